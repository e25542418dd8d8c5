"""Real kubectl, command by command: what people type, and what they see."""

from __future__ import annotations

import pytest

from tests.embedded.kubectl import DEFINITION, DEPLOYMENT, POD, WIDGET, Kubectl, needs_kubectl

pytestmark = needs_kubectl


def _list(kind: str, *manifests: str) -> str:
    """Objects inside one object, as `kubectl get -o yaml` writes them."""
    items = "".join(f"- {each.strip().replace(chr(10), chr(10) + '  ')}\n" for each in manifests)
    return f"apiVersion: v1\nkind: {kind}\nmetadata: {{}}\nitems:\n{items}"


def _event(name: str, day: str) -> str:
    seen = f'lastTimestamp: "{day}T00:00:00Z"' if day else ""
    about = "involvedObject: {kind: Pod, name: a, namespace: default}"
    return f"apiVersion: v1\nkind: Event\nmetadata: {{name: {name}}}\n{about}\n{seen}\n"


CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {a: b}"
LABELLED = CONFIG.replace("name: config", "name: config, labels: {app: web}")
NUMBERS = POD.replace('"1"', "1").replace("name: web", "name: numbers")

ADMISSION = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: slices}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [namespaces]}
  matchConditions: [{name: all, expression: "true"}]
  variables: [{name: node, expression: "object.spec.?nodeName.orValue('')"}]
  validations: [{expression: "false", message: no namespaces}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: slices}
spec: {policyName: slices, validationActions: [Deny]}
"""
FIVE = DEPLOYMENT.replace("replicas: 2", "replicas: 5")
ADDED = '[{"op":"add","path":"/metadata/labels","value":{"x":"y"}}]'
TESTED = '[{"op":"test","path":"/spec/replicas","value":9}]'
RUNNING = '{"status":{"phase":"Running"}}'

#: Commands with what they read and what they must show; those with a ! must fail.
Steps = list[tuple[str, str, str]]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [
                ("apply -f -", _list("List", CONFIG, POD, DEPLOYMENT), "deployment.apps/web creat"),
                ("apply -f -", _list("List", CONFIG, POD), "configmap/config unchanged"),
                ("apply -f -", _list("List", NUMBERS), "pod/numbers created"),
                ("replace -f -", _list("List", CONFIG), "configmap/config replaced"),
                ("delete -f -", _list("List", CONFIG), 'configmap "config" deleted'),
                ("create -f -", _list("List", CONFIG), "configmap/config created"),
            ],
            id="a list of objects",
        ),
        pytest.param(
            [("apply -f -", _list("ConfigMapList", CONFIG), "configmap/config created")],
            id="a list of objects of one kind",
        ),
        pytest.param(
            [("!apply -f -", _list("List", POD.replace("image:", "imag:")), 'field "imag"')],
            id="fields of a list are checked",
        ),
        pytest.param(
            [
                ("apply -f -", DEFINITION, "created"),
                ("apply -f -", _list("List", WIDGET), "widget.example.com/w created"),
                ("!apply -f -", _list("List", WIDGET.replace("3", "x")), "Widget.spec.size"),
            ],
            id="a list of custom resources",
        ),
        pytest.param(
            [
                (
                    "create cronjob tick --image=a --schedule=@hourly",
                    "",
                    "cronjob.batch/tick creat",
                ),
                ("get cronjobs", "", "tick"),
                ("create job once --from=cronjob/tick", "", "job.batch/once created"),
            ],
            id="a job from a cron job",
        ),
        pytest.param(
            [
                ("create ingress way --rule=a.example/b=web:80", "", "way created"),
                ("get ingress", "", "way"),
                ("create role reader --verb=get --resource=pods", "", "reader created"),
                ("create rolebinding me --role=reader --user=me", "", "me created"),
                ("set subject rolebinding me --user=you", "", "subjects updated"),
                ("create clusterrole reader --verb=get --resource=pods", "", "reader created"),
                ("create clusterrolebinding me --clusterrole=reader --user=me", "", "me created"),
            ],
            id="kinds that are only stored",
        ),
        pytest.param(
            [
                ("create -f -", ADMISSION, "Warning: admission policies and their bindings are st"),
                ("apply -f -", ADMISSION, "policybinding.admissionregistration.k8s.io/slices conf"),
                ("get validatingadmissionpolicies", "", "slices"),
                ("get validatingadmissionpolicy slices -o yaml", "", "generation: 1"),
                ("get validatingadmissionpolicy slices -o yaml", "", "failurePolicy: Fail"),
                ("get validatingadmissionpolicybindings -o name", "", "io/slices"),
                ("explain validatingadmissionpolicy.spec.validations", "", "expression"),
                ("create namespace denied", "", "created"),
                ("!create -f -", ADMISSION.replace("failurePolicy", "policy"), '"spec.policy"'),
                ("delete -f -", ADMISSION, 'io "slices" deleted'),
                ("!get validatingadmissionpolicybinding slices", "", "not found"),
            ],
            id="admission policies",
        ),
        pytest.param(
            [
                ("apply -f -", _list("List", LABELLED, POD), "configmap/config created"),
                ("apply -f - --prune -l app=web", POD, "configmap/config pruned"),
            ],
            id="pruning",
        ),
        pytest.param(
            [
                ("create service clusterip one --tcp=80:80", "", "created"),
                ("create service loadbalancer two --tcp=80:80", "", "created"),
                ("create service externalname three --external-name=a.b", "", "created"),
                ("get service one -o jsonpath={.spec.clusterIP}", "", "10.96."),
                ("get service two", "", "<pending>     80:3"),
                ("get service three", "", "ExternalName   <none>       a.b           <none>"),
                ("describe service one", "", "IP Families:              IPv4"),
            ],
            id="services have addresses",
        ),
        pytest.param(
            [
                ("apply -f -", _event("b", "2026-01-02"), "created"),
                ("apply -f -", _event("a", ""), "created"),
                ("get events --sort-by=.lastTimestamp -o name", "", "event/a\nevent/b\n"),
            ],
            id="events sorted by their time",
        ),
        pytest.param(
            [
                ("apply -f -", DEPLOYMENT, "created"),
                ("get deployment web --subresource=scale", "", "web    2         0"),
            ],
            id="the scale as a table",
        ),
        pytest.param(
            [
                ("apply -f -", POD, "created"),
                (f"patch pod web --subresource=status --type=merge -p {RUNNING}", "", "patched"),
                ("!logs web", "", "runs no containers"),
                ("!exec web -- ls", "", "nothing to run commands in"),
                ("!attach web", "", "nothing to attach to"),
                ("!port-forward web 0:80", "", "nothing to forward ports to"),
                ("!cp web:/a /dev/null", "", "nothing to run commands in"),
                ("!debug web --image=a", "", "nothing to debug"),
                ("top pod web", "", "web"),
                ("!autoscale pod web --max=3", "", "error"),
                ("create quota q --hard=pods=1", "", "resourcequota/q created"),
                ("!create token default", "", "could not find the requested resource"),
            ],
            id="polite refusals",
        ),
        pytest.param(
            [
                ("create deployment web --image=registry.example/web:1", "", "web created"),
                ("create configmap config --from-literal=a=b", "", "config created"),
                ("create secret generic safe --from-literal=a=b", "", "safe created"),
                ("create serviceaccount me", "", "me created"),
                ("get configmaps,secrets,serviceaccounts -o name", "", "serviceaccount/me"),
                ("get all --show-labels", "", "app=web"),
                ("get deployments -L app", "", "APP\nweb    0/1     0            0"),
                ("get deployments -A --sort-by=.metadata.name --no-headers", "", "default   web"),
                ("get deployments --field-selector metadata.name!=web", "", "No resources found"),
                (
                    "get configmaps --chunk-size=1 -o jsonpath={.items[*].metadata.name}",
                    "",
                    "config",
                ),
                ("describe configmap config", "", "a:\n----\nb"),
                ("describe secret safe", "", "a:  1 byte"),
                ("describe deployment web", "", "25% max unavailable, 25% max surge"),
            ],
            id="looking at objects",
        ),
        pytest.param(
            [
                ("apply -f -", DEPLOYMENT, "created"),
                ("apply -f - --dry-run=client", FIVE, "configured (dry run)"),
                ("apply -f - --dry-run=server", FIVE, "configured (server dry run)"),
                ("!diff -f -", FIVE, "+  replicas: 5"),
                ("diff -f -", DEPLOYMENT, ""),
                ("!diff --server-side --force-conflicts -f -", FIVE, "+  replicas: 5"),
                ("apply view-last-applied deployment/web", "", "replicas: 2"),
                ("replace -f -", FIVE, "replaced"),
                ("replace --force -f -", DEPLOYMENT, "replaced"),
                ("get deployment web -o jsonpath={.spec.replicas}", "", "2"),
            ],
            id="trying before doing",
        ),
        pytest.param(
            [
                ("apply -f -", DEPLOYMENT, "created"),
                ('patch deployment web -p {"spec":{"replicas":4}}', "", "patched"),
                ('patch deployment web --type=merge -p {"spec":{"replicas":3}}', "", "patched"),
                (f"patch deployment web --type=json -p {ADDED}", "", "patched"),
                (f"!patch deployment web --type=json -p {TESTED}", "", "testing path"),
                ("label deployment web tier=a", "", "labeled"),
                ("!label deployment web tier=b", "", "--overwrite is false"),
                ("label deployment web tier=b --overwrite", "", "labeled"),
                ("label deployment web tier- x-", "", "unlabeled"),
                ("annotate deployment web a=b", "", "annotated"),
                ("set resources deployment web --limits=cpu=200m", "", "requirements updated"),
                ("set env deployment web A=B", "", "env updated"),
                ("set serviceaccount deployment web me", "", "serviceaccount updated"),
                ("rollout pause deployment web", "", "paused"),
                ("rollout resume deployment web", "", "resumed"),
                (
                    "!scale deployment web --replicas=1 --current-replicas=9",
                    "",
                    "Expected replicas",
                ),
                ("wait deployment web --for=jsonpath={.spec.replicas}=3", "", "condition met"),
                ("wait deployment web --for=create", "", "condition met"),
                ("delete deployment web --now", "", "deleted"),
                ("wait deployment web --for=delete", "", ""),
            ],
            id="changing objects",
        ),
        pytest.param(
            [("explain pods.spec --output=plaintext-openapiv2", "", "coexistPolicy\t<string>")],
            id="explain from the older document",
        ),
    ],
)
async def test_commands(kubectl: Kubectl, steps: Steps) -> None:
    for command, stdin, shown in steps:
        if command.startswith("!"):
            assert shown in await kubectl.fails(command[1:], stdin)
        else:
            assert shown in await kubectl.run(command, stdin)
