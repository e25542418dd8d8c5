{{- define "moorage.labels" -}}
app.kubernetes.io/name: moorage
app.kubernetes.io/component: scheduler
{{- end }}

{{- define "moorage.chartLabels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "moorage.leaseNamespace" -}}
{{ if .Values.asDefaultScheduler }}kube-system{{ else }}{{ .Release.Namespace }}{{ end }}
{{- end }}

{{- define "moorage.leaseName" -}}
{{ if .Values.asDefaultScheduler }}kube-scheduler{{ else }}moorage{{ end }}
{{- end }}

{{- define "moorage.config" -}}
{{- $name := ternary "default-scheduler" .Values.schedulerName .Values.asDefaultScheduler -}}
{{- $election := dict "leaderElect" true "resourceNamespace" (include "moorage.leaseNamespace" .) "resourceName" (include "moorage.leaseName" .) -}}
{{- $own := dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" "leaderElection" $election "profiles" (list (dict "schedulerName" $name)) -}}
{{- merge (deepCopy .Values.config) $own | toYaml -}}
{{- end }}
