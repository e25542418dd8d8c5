"""What is not acceptable is refused with the API server's own words, and nothing is stored."""

from __future__ import annotations

import io
from typing import Any

import pytest

from moorage.embedded.request_refusals import RequestRefused
from tests.embedded.serving import MAPS, NODES, PODS, SECRETS, SERVICES, Client, node, pod, service

MAIN = {"name": "main", "image": "registry.example/app:1"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
APPS = "/apis/apps/v1/namespaces/default"


def asking(**resources: dict[str, str]) -> dict[str, Any]:
    return {"containers": [{**MAIN, "resources": resources}]}


def spread(**constraint: Any) -> dict[str, Any]:
    usual = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**usual, **constraint}]}


def on_nodes(*expressions: dict[str, Any]) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"affinity": {"nodeAffinity": {REQUIRED: terms}}}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{"name": "main"}]}, "spec.containers[0].image: Required value"),
        ({"containers": [{**MAIN, "name": "A_b"}]}, "a lowercase RFC 1123 label must consist of"),
        ({"containers": [MAIN, MAIN]}, 'spec.containers[1].name: Duplicate value: "main"'),
        (
            {"containers": [{**MAIN, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            {
                "containers": [{**MAIN, "volumeMounts": [{"name": "v"}]}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
            "spec.containers[0].volumeMounts[0].mountPath: Required value",
        ),
        (
            {"containers": [{**MAIN, "ports": [{"containerPort": 70000}]}]},
            "must be between 1 and 65535, inclusive",
        ),
        (
            asking(requests={"cpu": "-1"}),
            "spec.containers[0].resources.requests[cpu]: Invalid value: "
            '"-1": must be greater than or equal to 0',
        ),
        (
            asking(requests={"cpu": "2"}, limits={"cpu": "1"}),
            '"2": must be less than or equal to cpu limit of 1',
        ),
        (asking(limits={"foo": "1"}), "must be a standard resource type or fully qualified"),
        (asking(limits={"example.com/gpu": "500m"}), "must be an integer"),
        (asking(requests={"example.com/gpu": "1"}), "Limit must be set for non overcommitable"),
        ({"restartPolicy": "Odd"}, 'spec.restartPolicy: Unsupported value: "Odd"'),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]},
            "value must be empty when `operator` is 'Exists'",
        ),
        ({"tolerations": [{"operator": "Equal"}]}, "operator must be Exists when `key` is empty"),
        (
            {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}]},
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        ({"tolerations": [{"key": "a", "effect": "Odd"}]}, "tolerations[0].effect: Unsupported"),
        (spread(maxSkew=0), "maxSkew: Invalid value: 0: must be greater than zero"),
        (spread(topologyKey=""), "topologyKey: Required value: can not be empty"),
        (spread(whenUnsatisfiable="Odd"), "whenUnsatisfiable: Unsupported value"),
        (
            spread(whenUnsatisfiable="ScheduleAnyway", minDomains=2),
            "can only use minDomains if whenUnsatisfiable=DoNotSchedule",
        ),
        (spread(nodeTaintsPolicy="Odd"), "nodeTaintsPolicy: Unsupported value"),
        (on_nodes({"key": "a", "operator": "In"}), "values: Required value: must be specified"),
        (
            on_nodes({"key": "a", "operator": "Exists", "values": ["x"]}),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        (
            on_nodes({"key": "a", "operator": "Gt", "values": ["1", "2"]}),
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        ),
        (on_nodes({"key": "a", "operator": "Odd"}), "not a valid selector operator"),
        (
            {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}},
            "must have at least one node selector term",
        ),
        (
            {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 101, "preference": {}}]}}},
            "weight: Invalid value: 101: must be in the range 1-100",
        ),
        (
            {"affinity": {"podAffinity": {REQUIRED: [{"labelSelector": {}}]}}},
            "topologyKey: Required value: can not be empty",
        ),
        (
            {"schedulingGates": [{"name": "a"}, {"name": "a"}]},
            "schedulingGates[1]: Duplicate value",
        ),
        (
            {"schedulingGates": [{"name": "a"}], "nodeName": "n"},
            "cannot be set until all schedulingGates have been cleared",
        ),
        ({"nodeSelector": {"a b": "c"}}, "name part must consist of alphanumeric characters"),
        ({"volumes": [{"name": "a"}, {"name": "a"}]}, 'spec.volumes[1].name: Duplicate value: "a"'),
        (
            {"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/"}}]},
            "may not specify more than 1 volume type",
        ),
        ({"preemptionPolicy": "Odd"}, "PreemptionPolicy"),
        ({"activeDeadlineSeconds": 0}, "must be between 1 and 2147483647, inclusive"),
        ({"coexistPolicy": "Odd"}, "spec.coexistPolicy: Unsupported value"),
    ],
)
async def test_pods(client: Client, spec: dict[str, Any], told: str) -> None:
    code, status = await client.ask("POST", PODS, pod("a", **spec))

    assert status["kind"] == "Status"
    assert code in (403, 422)
    assert told in status["message"]
    assert (await client.get(PODS))["items"] == []


def deployment(**changes: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [MAIN]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **changes}
    return {"metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        (f"{APPS}/deployments", deployment(selector=None), "spec.selector: Required value"),
        (
            f"{APPS}/deployments",
            deployment(selector={}),
            "empty selector is invalid for deployment",
        ),
        (
            f"{APPS}/replicasets",
            deployment(selector={"matchLabels": {"x": "y"}}),
            "`selector` does not match template `labels`",
        ),
        (f"{APPS}/statefulsets", deployment(replicas=-1), "must be greater than or equal to 0"),
        (
            f"{APPS}/daemonsets",
            deployment(template={"metadata": {"labels": {"a": "b"}}, "spec": {}}),
            "spec.template.spec.containers: Required value",
        ),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            {"metadata": {"name": "x"}, "spec": {"template": {"spec": {"containers": [MAIN]}}}},
            'valid values: "OnFailure", "Never"',
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            {"metadata": {"name": "x"}, "spec": {"minAvailable": 1, "maxUnavailable": 1}},
            "minAvailable and maxUnavailable cannot be both set",
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            {"metadata": {"name": "x"}, "spec": {"minAvailable": "odd"}},
            "a valid percent string must be a numeric string",
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": "system-x"}, "value": 1},
            "priority class names with 'system-' prefix are reserved",
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": "x"}, "value": 2_000_000_000},
            "maximum allowed value of a user defined priority is 1000000000",
        ),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            {"metadata": {"name": "x"}},
            "provisioner: Required value",
        ),
        (
            "/api/v1/persistentvolumes",
            {"metadata": {"name": "x"}, "spec": {}},
            "spec: Required value: must specify a volume type",
        ),
        (
            "/api/v1/namespaces/default/persistentvolumeclaims",
            {"metadata": {"name": "x"}, "spec": {}},
            "spec.resources[storage]: Required value",
        ),
        (SERVICES, {"metadata": {"name": "x"}, "spec": {}}, "spec.ports: Required value"),
        (SERVICES, service("x", ports=[{}]), "spec.ports[0].port: Invalid value: 0: must be betw"),
        (SERVICES, service("x", ports=[{"port": 1}, {"port": 2}]), "spec.ports[0].name: Required"),
        (
            SERVICES,
            service("x", ports=[{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]),
            'spec.ports[1].name: Duplicate value: "a"',
        ),
        (SERVICES, service("x", clusterIP="odd"), 'spec.clusterIPs[0]: Invalid value: "odd"'),
        (SERVICES, service("x", type="ExternalName"), "spec.externalName: Required value"),
        (
            SERVICES,
            service("x", type="NodePort", ports=[{"port": 1, "nodePort": 80}]),
            "The range of valid ports is 30000-32767",
        ),
        (
            MAPS,
            {"metadata": {"name": "x"}, "data": {"a b": ""}},
            'data[a b]: Invalid value: "a b": a valid config key must consist of',
        ),
        (
            f"{APPS}/deployments",
            deployment(strategy={"type": "Odd"}),
            'spec.strategy: Unsupported value: {"type":"Odd"}: supported values: "Recreate", "Roll',
        ),
        (
            f"{APPS}/deployments",
            deployment(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when",
        ),
        ("/api/v1/namespaces", {"metadata": {"name": "A.b"}}, "a lowercase RFC 1123 label"),
        (
            NODES,
            {**node("x"), "spec": {"taints": [{"key": "a", "effect": "Odd"}]}},
            "taints[0].effect: Unsupported value",
        ),
        (
            NODES,
            {"metadata": {"name": "x"}, "status": {"capacity": {"cpu": "-1"}}},
            "must be greater than or equal to 0",
        ),
        (PODS, {"metadata": {}, "spec": {}}, "name or generateName is required"),
        (PODS, {**pod("Bad_Name")}, "a lowercase RFC 1123 subdomain must consist of"),
        (
            PODS,
            {**pod("x"), "metadata": {"name": "x", "labels": {"a": "b c"}}},
            "a valid label must be an empty string or consist of",
        ),
        (
            PODS,
            {**pod("x"), "metadata": {"name": "x", "ownerReferences": [{"kind": "A"}]}},
            "metadata.ownerReferences[0].apiVersion: Required value",
        ),
    ],
)
async def test_other_kinds(client: Client, path: str, body: Any, told: str) -> None:
    status = await client.refused(422, "POST", path, body)

    assert told in status["message"]
    assert status["reason"] == "Invalid"
    assert status["details"]["causes"]


@pytest.mark.parametrize(
    ("path", "body", "change", "told"),
    [
        (
            f"{APPS}/deployments",
            deployment(),
            {"spec": {"selector": {"matchLabels": {"c": "d"}}}},
            "field is immutable",
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": "x"}, "value": 1},
            {"value": 2},
            "value: Forbidden: may not be changed in an update.",
        ),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            {"metadata": {"name": "x"}, "provisioner": "a"},
            {"volumeBindingMode": "WaitForFirstConsumer"},
            "volumeBindingMode: Invalid value",
        ),
        (
            MAPS,
            {"metadata": {"name": "x"}, "immutable": True, "data": {"a": "b"}},
            {"data": {"a": "c"}},
            "data: Forbidden: field is immutable when `immutable` is set",
        ),
        (
            MAPS,
            {"metadata": {"name": "x"}, "immutable": True},
            {"immutable": None},
            "immutable: Forbidden: field is immutable when `immutable` is set",
        ),
        (SECRETS, {"metadata": {"name": "x"}}, {"type": "other"}, "type: Invalid value"),
        (
            SERVICES,
            service("x", clusterIP="10.96.1.1"),
            {"spec": {"clusterIP": "10.96.1.2"}},
            'spec.clusterIPs[0]: Invalid value: ["10.96.1.2"]: may not change once set',
        ),
        (
            "/api/v1/namespaces/default/persistentvolumeclaims",
            {
                "metadata": {"name": "x"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            },
            {"spec": {"accessModes": ["ReadOnlyMany"]}},
            "spec is immutable after creation",
        ),
    ],
)
async def test_what_may_not_change(
    client: Client, path: str, body: Any, change: Any, told: str
) -> None:
    made = await client.create(path, body)

    media = "application/merge-patch+json"
    status = await client.refused(422, "PATCH", f"{path}/x", change, kind=media)

    assert told in status["message"]
    assert await client.get(f"{path}/x") == made


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", PODS, b"{not json", 400),
        ("POST", PODS, b"[]", 400),
        ("POST", PODS, b"", 400),
        ("POST", PODS, b'{"kind":"Node"}', 400),
        ("POST", PODS, b'{"apiVersion":"v2"}', 400),
        ("POST", PODS, b'{"metadata":[]}', 400),
        ("POST", PODS, {**pod("x"), "metadata": {"name": "x", "namespace": "other"}}, 400),
        ("POST", PODS, {**pod("x"), "metadata": {"name": "x", "resourceVersion": "1"}}, 400),
        ("POST", f"{PODS}?dryRun=Some", pod("x"), 422),
        ("POST", f"{PODS}?fieldValidation=Strict", pod("x", odd=1), 400),
        ("POST", f"{PODS}?fieldValidation=Odd", pod("x"), 422),
        ("POST", f"{PODS}?fieldManager={'x' * 129}", pod("x"), 422),
        ("POST", f"{PODS}?fieldManager=%07", pod("x"), 422),
        ("POST", SECRETS, {"metadata": {"name": "x"}, "data": {"a": "!!"}}, 400),
        ("PUT", "/api/v1/namespaces/default", {"metadata": {}}, 400),
        ("PATCH", "/api/v1/namespaces/default?force=true", {}, 422),
        ("DELETE", f"{PODS}/x", {"kind": "Odd"}, 400),
        ("DELETE", f"{PODS}/x", {"propagationPolicy": "Odd"}, 422),
        ("DELETE", f"{PODS}/x", {"propagationPolicy": "Orphan", "orphanDependents": True}, 422),
        ("POST", "/api/v1/pods", pod("x"), 405),
        ("PUT", PODS, {}, 405),
        ("POST", f"{PODS}/x", {}, 405),
        ("GET", "/api/v1/bindings", None, 405),
        ("PUT", f"{PODS}/x", pod("x"), 404),
        ("DELETE", f"{PODS}/x", None, 404),
        ("GET", "/api/v1/odd", None, 404),
        ("GET", "/apis/odd/v1/pods", None, 404),
        ("GET", "/odd", None, 404),
        ("GET", f"{PODS}/x/odd", None, 404),
        ("GET", "/apis/apps/v1/deployments/x", None, 404),
        ("POST", PODS, pod("x", containers="text"), 400),
    ],
)
async def test_requests(client: Client, method: str, path: str, body: Any, code: int) -> None:
    await client.refused(code, method, path, body)


async def test_a_body_can_be_too_large(client: Client) -> None:
    body = io.BytesIO(b" " * (3 * 1024 * 1024 + 1))
    async with client.session.post(client.running.url + PODS, data=body) as response:
        status = await response.json()

    assert (response.status, status["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_config_map_can_be_too_large(client: Client) -> None:
    body = {"metadata": {"name": "x"}, "data": {"a": "x" * 1024 * 1024, "b": "y"}}
    with pytest.raises(RequestRefused, match="Too long: may not be more than 1048576 bytes"):
        client.running.api.create(client.running.api.kinds["configmaps"], "default", body)


async def test_unknown_fields_are_dropped_with_a_warning(client: Client) -> None:
    url = client.running.url + PODS
    sent = pod("a", odd={"x": 1})
    async with client.session.post(url, json=sent) as response:
        made = await response.json()

    assert "odd" not in made["spec"]
    assert response.headers["Warning"] == '299 - "unknown field \\"spec.odd\\""'


async def test_names_of_unknown_fields_cannot_forge_headers(client: Client) -> None:
    url = client.running.url + PODS
    async with client.session.post(url, json=pod("a", **{"x\r\nSet-Cookie: a": 1})) as response:
        assert response.status == 201

    assert "Set-Cookie" not in response.headers


async def test_yaml_without_tricks(client: Client) -> None:
    text = b"metadata: {name: a, annotations: {day: '2026-01-01'}}\ndata: {x: '1'}\n"
    maps = "/api/v1/namespaces/default/configmaps"
    made = await client.create(maps, text, kind="application/yaml")
    assert made["data"] == {"x": "1"}

    doubled = [f"a{at}: &a{at} [*a{at - 1}, *a{at - 1}]" for at in range(1, 40)]
    bomb = "\n".join(["a0: &a0 [x, x]", *doubled]).encode()
    status = await client.refused(400, "POST", maps, bomb, kind="application/yaml")
    assert "the body is not YAML: the body: document 1" in status["message"]
    two = text + b"---\n" + text
    status = await client.refused(400, "POST", maps, two, kind="application/yaml")
    assert status["message"] == "the body must be one document of YAML"


async def test_a_dry_run_leaves_nothing_behind(client: Client) -> None:
    made = await client.create(f"{PODS}?dryRun=All", pod("a"))
    assert made["spec"]["schedulerName"] == "default-scheduler"
    await client.refused(404, "GET", f"{PODS}/a")
    kept = await client.create(PODS, pod("a"))

    media = "application/merge-patch+json"
    change = {"metadata": {"labels": {"x": "y"}}}
    code, changed = await client.ask("PATCH", f"{PODS}/a?dryRun=All", change, kind=media)
    await client.delete(f"{PODS}/a?dryRun=All")

    assert code == 200
    assert changed["metadata"]["labels"] == {"x": "y"}
    assert await client.get(f"{PODS}/a") == kept


async def test_names_are_made_up_on_request(client: Client) -> None:
    body = {**pod(""), "metadata": {"generateName": "web-"}}

    names = {(await client.create(PODS, body))["metadata"]["name"] for _ in range(20)}

    assert len(names) == 20
    assert all(name.startswith("web-") and len(name) == 9 for name in names)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            "horizontalpodautoscalers.autoscaling are not served here: nothing here measures load",
        ),
        ("/api/v1/namespaces/default/oddities", "could not find the requested resource"),
    ],
)
async def test_a_kind_that_is_not_served_says_so(path: str, message: str, client: Client) -> None:
    status = await client.refused(404, "GET", path)

    assert message in status["message"]
