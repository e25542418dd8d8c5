"""Changes of a cluster and variations of a pod: one of each kind that plugins can see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec

from moorage.cluster import Cluster
from moorage.objects.decode import from_builtins
from moorage.objects.meta import Condition, OwnerReference
from moorage.objects.pod import Pod
from moorage.objects.pod_status import PodStatus
from moorage.objects.resource_claim import DeviceObject
from moorage.objects.selector import equality
from moorage.objects.storage import StorageObject
from moorage.objects.workload import Namespace, PodDisruptionBudget, Service

from .builders import node, pod

Change = Callable[[Cluster], None]

replace = msgspec.structs.replace

_CONDITIONS = (Condition(type="DiskPressure", status="True"),)
_LATE = node(
    labels={"late": "yes"},
    spec={"taints": [{"key": "late", "effect": "NoSchedule"}]},
    status={"images": [{"names": ["late:v1"], "sizeBytes": 2**30}]},
)
_STATUS = PodStatus(phase="Unknown", conditions=_CONDITIONS)
_OWNER = OwnerReference(kind="Job", name="late", uid="late", controller=True)
_SELECTOR = equality({"app": "late"})

#: An annotation and a label that no plugin has heard of.
STRANGE = "moorage.dev/strange"


def make_changes(cluster: Cluster) -> tuple[Change, ...]:
    """Returns one change of each kind that the cluster notes, for each node and pod it is about."""
    names = cluster.nodes.names(cluster.nodes.rows.tolist())
    return (
        *(change for name in names for change in _of_node(name)),
        *(change for uid in sorted(cluster.pods) for change in _of_pod(uid)),
        *_OF_CLUSTER,
    )


def _of_node(name: str) -> Iterator[Change]:
    """Yields the changes of a node, and of what is there."""
    yield _change_node(name, labels=_LATE.labels)
    yield _change_node(name, taints=_LATE.taints)
    yield _change_node(name, unschedulable=True)
    yield _change_node(name, allocatable=node(cpu=1).allocatable)
    yield _change_node(name, annotations={STRANGE: "yes"})
    yield _change_node(name, conditions=_CONDITIONS)
    yield _change_node(name, images=_LATE.images)
    yield _change_node(name, declared_features=frozenset({"Late"}))
    late = pod("late", node=name, labels={"app": "late"}, cpu=1)
    yield lambda cluster: _discard(cluster.put_pod(late))
    yield lambda cluster: cluster.nominate(pod("nominated", cpu=1), name)
    made = _made("ResourceSlice", name, nodeName=name, devices=[{"name": "late"}], **_SLICE)
    yield lambda cluster: _discard(cluster.put_device(made))
    driver = {"name": "late", "nodeID": name, "allocatable": {"count": 1}}
    limits = _made("CSINode", name, drivers=[driver])
    yield lambda cluster: _discard(cluster.put_storage(limits))
    yield lambda cluster: _discard(cluster.remove_node(name))


def _of_pod(uid: str) -> Iterator[Change]:
    """Yields the changes of a pod that runs."""
    yield _change_pod(uid, labels={"app": "late"})
    yield _change_pod(uid, annotations={STRANGE: "yes"})
    yield _change_pod(uid, status=_STATUS)
    yield _change_pod(uid, owner=_OWNER)
    yield lambda cluster: _discard(cluster.remove_pod(uid))


def _change_node(name: str, **fields: Any) -> Change:
    def change(cluster: Cluster) -> None:
        row = cluster.nodes.row(name)
        if row is not None:
            cluster.put_node(replace(cluster.nodes.node(row), **fields))

    return change


def _change_pod(uid: str, **fields: Any) -> Change:
    return lambda cluster: _discard(cluster.put_pod(replace(cluster.pods[uid], **fields)))


def _discard(_: object) -> None:
    """Takes what a change returns."""


def _made(kind: str, name: str, namespace: str = "", **spec: Any) -> Any:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return from_builtins(kind, {"metadata": metadata, "spec": spec})


def _put(item: Namespace | Service | PodDisruptionBudget) -> Change:
    return lambda cluster: _discard(cluster.put_workload(item))


def _put_storage(item: StorageObject) -> Change:
    return lambda cluster: _discard(cluster.put_storage(item))


def _put_device(item: DeviceObject) -> Change:
    return lambda cluster: _discard(cluster.put_device(item))


_SLICE: dict[str, Any] = {
    "driver": "late",
    "pool": {"name": "late", "generation": 1, "resourceSliceCount": 1},
}
_REQUEST = {"name": "late", "exactly": {"deviceClassName": "late"}}
_VOLUME: dict[str, Any] = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}

#: Changes of what belongs to no node.
_OF_CLUSTER: tuple[Change, ...] = (
    lambda cluster: _discard(cluster.put_node(node("late"))),
    _put(Namespace(name="default", labels={"late": "yes"})),
    _put(Service(namespace="default", name="late", selector=_SELECTOR)),
    _put(PodDisruptionBudget(namespace="default", name="late", selector=_SELECTOR)),
    _put_storage(
        cast(
            StorageObject,
            from_builtins("StorageClass", {"metadata": {"name": "late"}, "provisioner": "late"}),
        )
    ),
    _put_storage(_made("PersistentVolume", "late", **_VOLUME)),
    _put_storage(_made("PersistentVolumeClaim", "late", "default", accessModes=["ReadWriteOnce"])),
    _put_device(_made("DeviceClass", "late", extendedResourceName="example.com/gpu")),
    _put_device(_made("ResourceClaim", "late", "default", devices={"requests": [_REQUEST]})),
    _put_device(_made("ResourceSlice", "all", allNodes=True, devices=[{"name": "late"}], **_SLICE)),
)


def _touch_node(cluster: Cluster) -> None:
    for name in cluster.nodes.names(cluster.nodes.rows.tolist()):
        _change_node(name, resource_version="late")(cluster)


def _touch_pods(cluster: Cluster) -> None:
    for uid in sorted(cluster.pods):
        _change_pod(uid, resource_version="late", generation=7)(cluster)


#: Changes that are noted nowhere: no answer may depend on them.
UNNOTED: tuple[Change, ...] = (_touch_node, _touch_pods)


def twins(of: Pod) -> Iterator[Pod]:
    """Yields other pods of the same template, with the same labels, annotations and owner."""
    name = f"{of.name}-twin"
    twin = replace(of, name=name, uid=name, resource_version="7", generation=3, created=5.0)
    yield twin
    yield replace(twin, status=replace(of.status, phase="Unknown", conditions=_CONDITIONS))


def variations(of: Pod) -> Iterator[Pod]:
    """Yields pods that differ from the given one in their name and in one more thing each."""
    yield from twins(of)
    other = replace(of, name=f"{of.name}-other", uid=f"{of.name}-other")
    yield replace(other, name=f"{of.name}-7")
    yield replace(other, labels={**of.labels, STRANGE: "yes"})
    yield replace(other, annotations={**of.annotations, STRANGE: "yes"})
    for key in of.labels:
        yield replace(
            other, labels={name: value for name, value in of.labels.items() if name != key}
        )
    for key in of.annotations:
        rest = {name: value for name, value in of.annotations.items() if name != key}
        yield replace(other, annotations=rest)
    yield replace(other, owner=None if of.owner else _OWNER)
    yield replace(other, namespace=f"{of.namespace}-other")
    yield replace(other, terminating=not of.terminating)
    priority = (of.spec.priority or 0) + 1
    yield replace(other, spec=replace(of.spec, priority=priority))
