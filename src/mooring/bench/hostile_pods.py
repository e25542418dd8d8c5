"""The pods of the hostile benchmark: each fills one field that a tenant may write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Manifest = dict[str, Any]
#: Fills a pod with the n-th piece of an attack.
Attack = Callable[[Manifest, int], Any]

NAMESPACES = 100

#: Attacks are named by the field that they fill.
ATTACKS: dict[str, Attack] = {}

_HOSTNAME = "kubernetes.io/hostname"


def attack(name: str) -> Callable[[Attack], Attack]:
    def add(fill: Attack) -> Attack:
        ATTACKS[name] = fill
        return fill

    return add


def pod(fill: Attack, size: int) -> Manifest:
    """A pod that an attack has filled until it has about so many bytes."""
    made: Manifest = {
        "metadata": {
            "name": "hostile",
            "namespace": "ns-1",
            "uid": "hostile",
            "labels": {"app": "hostile"},
        },
        "spec": {"containers": [{"name": "c", "image": "pause"}]},
    }
    length, at = len(json.dumps(made)), 0
    while length < size:
        length += len(json.dumps(fill(made, at))) + 2
        at += 1
    return made


def ordinary(at: int, node_name: str) -> Manifest:
    """One of the pods that are there already: 3,000 templates, a third with labels of their own."""
    app = f"app-{at % 3_000}"
    labels = {"app": app, "tier": f"tier-{at % 5}", "pod-template-hash": f"{at % 3_000:x}"}
    if at % 3 == 0:
        labels["statefulset.kubernetes.io/pod-name"] = f"{app}-{at}"
    requests = {"cpu": f"{10 + at % 7}m", "memory": f"{1 + at % 5}Mi"}
    return {
        "metadata": {
            "name": f"pod-{at}",
            "namespace": f"ns-{at % NAMESPACES}",
            "uid": f"pod-{at}",
            "labels": labels,
        },
        "spec": {
            "nodeName": node_name,
            "containers": [{"name": "c", "resources": {"requests": requests}}],
        },
    }


def spread_pod() -> Manifest:
    """An ordinary pod that is spread over zones."""
    made = ordinary(20_000_000, "")
    constraint = {
        "maxSkew": 5,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "app-1"}},
    }
    made["spec"]["topologySpreadConstraints"] = [constraint]
    return made


def greedy_pod() -> Manifest:
    """An important pod that no node has room for, whoever makes way."""
    made = ordinary(20_000_001, "")
    made["spec"]["priority"] = 1_000
    made["spec"]["containers"][0]["resources"] = {"requests": {"example.com/gpu": "9"}}
    return made


def node(at: int) -> Manifest:
    """A node with as many labels as a cloud gives it."""
    labels = {f"node.example.com/property-{i}": f"value-{at % (i + 2)}" for i in range(16)}
    labels |= {
        _HOSTNAME: f"node-{at}",
        "topology.kubernetes.io/zone": f"zone-{at % 3}",
        "rack": f"rack-{at % 200}",
        "size": str(at % 64),
    }
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "250", "example.com/gpu": "8"}
    return {
        "metadata": {"name": f"node-{at}", "labels": labels},
        "status": {"allocatable": allocatable},
    }


def _within(made: Manifest, *path: str) -> list[Any]:
    """The list at a path of the spec, made if it is not there."""
    at = made["spec"]
    for name in path[:-1]:
        at = at.setdefault(name, {})
    found: list[Any] = at.setdefault(path[-1], [])
    return found


def _append(made: Manifest, item: Any, *path: str) -> Any:
    _within(made, *path).append(item)
    return item


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NODE_TERMS = ("affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")


def _expression(made: Manifest, item: Manifest) -> Any:
    """One more expression of the first term of required node affinity."""
    terms = _within(made, *_NODE_TERMS)
    if not terms:
        terms.append({"matchExpressions": []})
    terms[0]["matchExpressions"].append(item)
    return item


@attack("node expressions, unknown keys")
def _(made: Manifest, at: int) -> Any:
    return _expression(made, {"key": f"unknown-{at}", "operator": "DoesNotExist"})


@attack("node expressions, known key")
def _(made: Manifest, at: int) -> Any:
    return _expression(made, {"key": _HOSTNAME, "operator": "NotIn", "values": [f"x{at}"]})


@attack("node expressions, numbers")
def _(made: Manifest, at: int) -> Any:
    return _expression(made, {"key": "size", "operator": "Gt", "values": [str(-1 - at)]})


@attack("node expression, values")
def _(made: Manifest, at: int) -> Any:
    if not at:
        _expression(made, {"key": _HOSTNAME, "operator": "NotIn", "values": ["x"]})
    _within(made, *_NODE_TERMS)[0]["matchExpressions"][0]["values"].append(f"x{at}")
    return f"x{at}"


@attack("node terms")
def _(made: Manifest, at: int) -> Any:
    item = {"key": "rack", "operator": "NotIn", "values": [f"x{at}"]}
    return _append(made, {"matchExpressions": [item]}, *_NODE_TERMS)


@attack("node terms, names")
def _(made: Manifest, at: int) -> Any:
    item = {"key": "metadata.name", "operator": "NotIn", "values": [f"node-{at}"]}
    return _append(made, {"matchFields": [item]}, *_NODE_TERMS)


@attack("node preferences")
def _(made: Manifest, at: int) -> Any:
    item = {"key": "rack", "operator": "NotIn", "values": [f"x{at}"]}
    preference = {"weight": 1 + at % 100, "preference": {"matchExpressions": [item]}}
    return _append(made, preference, "affinity", "nodeAffinity", _PREFERRED)


@attack("node selector")
def _(made: Manifest, at: int) -> Any:
    made["spec"].setdefault("nodeSelector", {})[f"key-{at}"] = "value"
    return {f"key-{at}": "value"}


def _term(at: int, **more: Any) -> Manifest:
    item = {"key": "app", "operator": "NotIn", "values": [f"x{at}"]}
    return {"topologyKey": _HOSTNAME, "labelSelector": {"matchExpressions": [item]}, **more}


@attack("anti-affinity, all namespaces")
def _(made: Manifest, at: int) -> Any:
    return _append(made, _term(at, namespaceSelector={}), "affinity", "podAntiAffinity", _REQUIRED)


@attack("100 anti-affinity terms")
def _(made: Manifest, at: int) -> Any:
    if at < 100:
        term = _term(at, namespaceSelector={})
        return _append(made, term, "affinity", "podAntiAffinity", _REQUIRED)
    filling = "x" * 10_000
    made["metadata"].setdefault("annotations", {})[f"filling-{at}"] = filling
    return filling


@attack("affinity, all namespaces")
def _(made: Manifest, at: int) -> Any:
    return _append(made, _term(at, namespaceSelector={}), "affinity", "podAffinity", _REQUIRED)


@attack("affinity, namespace selectors")
def _(made: Manifest, at: int) -> Any:
    item = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [f"x{at}"]}
    term = _term(at, namespaceSelector={"matchExpressions": [item, {**item, "values": ["y"]}]})
    return _append(made, term, "affinity", "podAntiAffinity", _REQUIRED)


@attack("affinity, topology keys")
def _(made: Manifest, at: int) -> Any:
    term = _term(0, topologyKey=f"key-{at}")
    return _append(made, term, "affinity", "podAntiAffinity", _REQUIRED)


@attack("affinity, weighted")
def _(made: Manifest, at: int) -> Any:
    term = {"weight": 1 + at % 100, "podAffinityTerm": _term(at)}
    return _append(made, term, "affinity", "podAffinity", _PREFERRED)


@attack("affinity, expressions")
def _(made: Manifest, at: int) -> Any:
    path = ("affinity", "podAntiAffinity", _REQUIRED)
    if not at:
        _append(made, _term(0, namespaceSelector={}), *path)
    item = {"key": f"key-{at}", "operator": "DoesNotExist"}
    _within(made, *path)[0]["labelSelector"]["matchExpressions"].append(item)
    return item


def _constraint(at: int, action: str, key: str) -> Manifest:
    item = {"key": "app", "operator": "NotIn", "values": [f"x{at}"]}
    return {
        "maxSkew": 1 + at,
        "topologyKey": key,
        "whenUnsatisfiable": action,
        "labelSelector": {"matchExpressions": [item]},
    }


@attack("spread, unknown keys")
def _(made: Manifest, at: int) -> Any:
    constraint = _constraint(at, "DoNotSchedule", f"key-{at}")
    return _append(made, constraint, "topologySpreadConstraints")


@attack("spread, preferred")
def _(made: Manifest, at: int) -> Any:
    constraint = _constraint(at, "ScheduleAnyway", "rack" if at % 2 else f"key-{at}")
    return _append(made, constraint, "topologySpreadConstraints")


@attack("tolerations")
def _(made: Manifest, at: int) -> Any:
    toleration = {"key": f"key-{at}", "operator": "Exists", "effect": "NoSchedule"}
    return _append(made, toleration, "tolerations")


@attack("labels")
def _(made: Manifest, at: int) -> Any:
    made["metadata"]["labels"][f"key-{at}"] = f"value-{at}"
    return {f"key-{at}": f"value-{at}"}


@attack("annotations")
def _(made: Manifest, at: int) -> Any:
    made["metadata"].setdefault("annotations", {})[f"key-{at}"] = f"value-{at}"
    return {f"key-{at}": f"value-{at}"}


@attack("owner references")
def _(made: Manifest, at: int) -> Any:
    owner = {"kind": "Job", "name": f"job-{at}", "uid": f"uid-{at}", "apiVersion": "batch/v1"}
    made["metadata"].setdefault("ownerReferences", []).append(owner)
    return owner


@attack("containers")
def _(made: Manifest, at: int) -> Any:
    requests = {"requests": {"cpu": "1m"}}
    container = {"name": f"c{at}", "image": f"image-{at}", "resources": requests}
    return _append(made, container, "containers")


@attack("init containers")
def _(made: Manifest, at: int) -> Any:
    sidecar = {"name": f"c{at}", "image": f"image-{at}", "restartPolicy": "Always"}
    return _append(made, sidecar, "initContainers")


@attack("resources")
def _(made: Manifest, at: int) -> Any:
    first = made["spec"]["containers"][0].setdefault("resources", {})
    first.setdefault("requests", {})[f"example.com/r{at}"] = "1"
    return {f"example.com/r{at}": "1"}


@attack("host ports")
def _(made: Manifest, at: int) -> Any:
    port = {"containerPort": 80, "hostPort": 1 + at % 65_535, "hostIP": f"10.0.0.{at // 65_535}"}
    made["spec"]["containers"][0].setdefault("ports", []).append(port)
    return port


@attack("volumes, claims")
def _(made: Manifest, at: int) -> Any:
    claim = {"claimName": f"claim-{at}"}
    return _append(made, {"name": f"v{at}", "persistentVolumeClaim": claim}, "volumes")


@attack("volumes, disks")
def _(made: Manifest, at: int) -> Any:
    disk = {"pdName": f"disk-{at}"}
    return _append(made, {"name": f"v{at}", "gcePersistentDisk": disk}, "volumes")


@attack("scheduling gates")
def _(made: Manifest, at: int) -> Any:
    return _append(made, {"name": f"gate-{at}"}, "schedulingGates")
