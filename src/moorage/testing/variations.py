"""Changes of a cluster and variations of a pod: one of each kind that plugins can see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from moorage.cluster import Cluster
from moorage.objects.meta import Condition, OwnerReference
from moorage.objects.pod import Pod
from moorage.objects.pod_status import PodStatus
from moorage.objects.selector import equality
from moorage.objects.workload import Namespace, PodDisruptionBudget, Service

from .builders import node, pod

Change = Callable[[Cluster], None]

replace = msgspec.structs.replace

_CONDITIONS = (Condition(type="DiskPressure", status="True"),)
_LATE = node(labels={"late": "yes"}, spec={"taints": [{"key": "late", "effect": "NoSchedule"}]})
_STATUS = PodStatus(phase="Unknown", conditions=_CONDITIONS)
_OWNER = OwnerReference(kind="Job", name="late", uid="late", controller=True)
_SELECTOR = equality({"app": "late"})

#: An annotation and a label that no plugin has heard of.
STRANGE = "moorage.dev/strange"


def _change_first(**fields: Any) -> Change:
    """Returns a change of the first node."""

    def change(cluster: Cluster) -> None:
        for row in cluster.nodes.rows.tolist()[:1]:
            cluster.put_node(replace(cluster.nodes.node(row), **fields))

    return change


def _change_pod(**fields: Any) -> Change:
    """Returns a change of a pod that runs."""

    def change(cluster: Cluster) -> None:
        for uid in sorted(cluster.pods)[:1]:
            cluster.put_pod(replace(cluster.pods[uid], **fields))

    return change


def _add_pod(cluster: Cluster) -> None:
    for name in cluster.nodes.names(cluster.nodes.rows.tolist()[:1]):
        cluster.put_pod(pod("late", node=name, labels={"app": "late"}, cpu=1))


def _remove_pod(cluster: Cluster) -> None:
    for uid in sorted(cluster.pods)[:1]:
        cluster.remove_pod(uid)


def _add_node(cluster: Cluster) -> None:
    cluster.put_node(node("late"))


def _nominate(cluster: Cluster) -> None:
    for name in cluster.nodes.names(cluster.nodes.rows.tolist()[:1]):
        cluster.nominate(pod("nominated", cpu=1), name)


def _put(item: Namespace | Service | PodDisruptionBudget) -> Change:
    def change(cluster: Cluster) -> None:
        cluster.put_workload(item)

    return change


#: One change of each kind that the cluster notes.
CHANGES: tuple[Change, ...] = (
    _change_first(labels=_LATE.labels),
    _change_first(taints=_LATE.taints),
    _change_first(unschedulable=True),
    _change_first(allocatable=node(cpu=1).allocatable),
    _change_first(annotations={STRANGE: "yes"}),
    _change_first(conditions=_CONDITIONS),
    _change_first(declared_features=frozenset({"Late"})),
    _add_pod,
    _change_pod(labels={"app": "late"}),
    _change_pod(annotations={STRANGE: "yes"}),
    _change_pod(status=_STATUS),
    _change_pod(owner=_OWNER),
    _remove_pod,
    _add_node,
    _nominate,
    _put(Namespace(name="default", labels={"late": "yes"})),
    _put(Service(namespace="default", name="late", selector=_SELECTOR)),
    _put(PodDisruptionBudget(namespace="default", name="late", selector=_SELECTOR)),
)

#: Changes that are noted nowhere: no answer may depend on them.
UNNOTED: tuple[Change, ...] = (
    _change_first(resource_version="late"),
    _change_pod(resource_version="late", generation=7),
)


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
