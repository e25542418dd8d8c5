{{- define "mooring.labels" -}}
app.kubernetes.io/name: mooring
app.kubernetes.io/component: scheduler
{{- end }}

{{- define "mooring.chartLabels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "mooring.leaseNamespace" -}}
{{ if .Values.asDefaultScheduler }}kube-system{{ else }}{{ .Release.Namespace }}{{ end }}
{{- end }}

{{- define "mooring.leaseName" -}}
{{ if .Values.asDefaultScheduler }}kube-scheduler{{ else }}mooring{{ end }}
{{- end }}

{{- define "mooring.config" -}}
{{- $name := ternary "default-scheduler" .Values.schedulerName .Values.asDefaultScheduler -}}
{{- $election := dict "leaderElect" true "resourceNamespace" (include "mooring.leaseNamespace" .) "resourceName" (include "mooring.leaseName" .) -}}
{{- $own := dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" "leaderElection" $election "profiles" (list (dict "schedulerName" $name)) -}}
{{- merge (deepCopy .Values.config) $own | toYaml -}}
{{- end }}
