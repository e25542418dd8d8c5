"""The pods of the hostile benchmark: each fills one field that a tenant may write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .hostile_cluster import CLAIMS, Manifest

#: Fills a pod with the n-th piece of an attack.
Attack = Callable[[Manifest, int], Any]

#: Attacks are named by the field that they fill.
ATTACKS: dict[str, Attack] = {}

_HOSTNAME = "kubernetes.io/hostname"


def attack(name: str) -> Callable[[Attack], Attack]:
    """Adds an attack to the table."""

    def add(fill: Attack) -> Attack:
        ATTACKS[name] = fill
        return fill

    return add


def pod(fill: Attack, size: int) -> Manifest:
    """Returns a pod that an attack has filled until it has about so many bytes."""
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


def _within(made: Manifest, *path: str) -> list[Any]:
    """Returns the list at a path of the spec, made if it is not there."""
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
    """Adds an expression to the first term of required node affinity."""
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


@attack("node terms, one name each")
def _(made: Manifest, at: int) -> Any:
    item = {"key": "metadata.name", "operator": "In", "values": [f"node-{at}"]}
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


def _repel_all(made: Manifest, at: int, key: str = _HOSTNAME) -> Any:
    """Adds a term of required anti-affinity that all pods match."""
    term = _term(at, namespaceSelector={}, topologyKey=key)
    return _append(made, term, "affinity", "podAntiAffinity", _REQUIRED)


def _fill(made: Manifest, at: int) -> Any:
    """Bytes that nobody reads."""
    filling = "x" * 10_000
    made["metadata"].setdefault("annotations", {})[f"filling-{at}"] = filling
    return filling


@attack("anti-affinity, all namespaces")
def _(made: Manifest, at: int) -> Any:
    return _repel_all(made, at)


@attack("100 anti-affinity terms")
def _(made: Manifest, at: int) -> Any:
    return _repel_all(made, at) if at < 100 else _fill(made, at)


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


def _lengthen(made: Manifest, at: int, *path: str) -> Any:
    """Adds a text to a list of one of ten anti-affinity terms."""
    terms = ("affinity", "podAntiAffinity", _REQUIRED)
    if at < 10:
        return _append(made, _term(at, namespaces=[]), *terms)
    found: Any = _within(made, *terms)[at % 10]
    for name in path:
        found = found[0][name] if isinstance(found, list) else found[name]
    found.append(f"x{at}")
    return f"x{at}"


@attack("affinity, values")
def _(made: Manifest, at: int) -> Any:
    return _lengthen(made, at, "labelSelector", "matchExpressions", "values")


@attack("affinity, namespaces")
def _(made: Manifest, at: int) -> Any:
    return _lengthen(made, at, "namespaces")


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


@attack("volumes, one unbound claim")
def _(made: Manifest, at: int) -> Any:
    return _claim_volume(made, at, "late-0")


@attack("volumes, unbound claims")
def _(made: Manifest, at: int) -> Any:
    return _claim_volume(made, at, f"late-{at % CLAIMS}")


@attack("volumes, local disks to choose")
def _(made: Manifest, at: int) -> Any:
    return _claim_volume(made, at, f"local-{at % CLAIMS}")


@attack("volumes, 20 local disks to choose")
def _(made: Manifest, at: int) -> Any:
    return _claim_volume(made, at, f"local-{at}") if at < 20 else _fill(made, at)


@attack("volumes, bound claims")
def _(made: Manifest, at: int) -> Any:
    return _claim_volume(made, at, f"bound-{at % CLAIMS}")


def _claim_volume(made: Manifest, at: int, name: str) -> Any:
    volume = {"name": f"v{at}", "persistentVolumeClaim": {"claimName": name}}
    return _append(made, volume, "volumes")


@attack("images that nodes have")
def _(made: Manifest, at: int) -> Any:
    return _append(made, {"name": f"c{at}", "image": "image-1:1"}, "containers")


@attack("preemption, 3 anti-affinity terms")
def _(made: Manifest, at: int) -> Any:
    made["spec"]["priority"] = 1_000
    return _repel_all(made, at) if at < 3 else _fill(made, at)


@attack("preemption, 60 anti-affinity terms")
def _(made: Manifest, at: int) -> Any:
    made["spec"]["priority"] = 1_000
    return _repel_all(made, at) if at < 60 else _fill(made, at)


@attack("preemption in vain, zones")
def _(made: Manifest, at: int) -> Any:
    made["spec"]["priority"] = 1_000
    return _repel_all(made, at, "topology.kubernetes.io/zone") if at < 1 else _fill(made, at)


@attack("preemption, cpu and a port")
def _(made: Manifest, at: int) -> Any:
    made["spec"]["priority"] = 1_000
    made["spec"]["containers"][0] |= {
        "resources": {"requests": {"cpu": "63990m"}},
        "ports": [{"containerPort": 80, "hostPort": 80}],
    }
    return _fill(made, at)
