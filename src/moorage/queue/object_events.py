"""Translates changes of objects into the events that plugins register for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, get_args

import msgspec

from moorage.framework.wakeups import Action, ClusterEvent, Resource
from moorage.objects.custom import CustomKind, CustomObject
from moorage.objects.kinds import KINDS
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import DeviceObject
from moorage.objects.storage import StorageObject

_LABELS = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE: "Update",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    Action.UPDATE_POD_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_CLAIM: "UpdatePodGeneratedResourceClaim",
}


@cache
def make_event(resource: Resource | str, action: Action) -> ClusterEvent:
    """Makes an event with kube-scheduler's label for it."""
    return ClusterEvent(resource, action, f"{resource}{_LABELS[action]}")


NODE_ADD = make_event(Resource.NODE, Action.ADD)
NODE_DELETE = make_event(Resource.NODE, Action.DELETE)
ASSIGNED_POD_ADD = make_event(Resource.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = make_event(Resource.ASSIGNED_POD, Action.DELETE)
UNSCHEDULED_POD_ADD = make_event(Resource.UNSCHEDULED_POD, Action.ADD)
UNSCHEDULED_POD_UPDATE = make_event(Resource.UNSCHEDULED_POD, Action.UPDATE)
UNSCHEDULED_POD_DELETE = make_event(Resource.UNSCHEDULED_POD, Action.DELETE)
NAMESPACE_UPDATE = make_event("Namespace", Action.UPDATE)
GROUP_ADD = make_event("PodGroup", Action.ADD)
GROUP_UPDATE = make_event("PodGroup", Action.UPDATE)
GROUP_DELETE = make_event("PodGroup", Action.DELETE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(Resource.ANYTHING, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(Resource.ANYTHING, Action.ALL, "ForceActivate")

# Labels of moves that no event causes.
SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"
GROUP_CHANGE = GROUP_UPDATE.label
# What a pod in flight counts as among the events that are remembered.
POD_POPPED = "PodPopped"


_RESOURCES: dict[Any, Resource] = {
    kind.item: Resource(kind.event_resource)
    for kind in KINDS.values()
    if kind.item in get_args(StorageObject) + get_args(DeviceObject)
}


_Described = StorageObject | DeviceObject | CustomObject


def object_event(item: StorageObject | DeviceObject, action: Action) -> ClusterEvent:
    """Returns the event of an object; all kinds of updates are one event."""
    return make_event(_RESOURCES[type(item)], action)


def custom_event(kind: CustomKind, action: Action) -> ClusterEvent:
    """Returns the event of a custom resource; all kinds of updates are one event."""
    return make_event(kind.resource, action)


def says_the_same(old: _Described, new: _Described) -> bool:
    """Whether an update changes nothing that is read, such as a repeated measurement."""
    version = getattr(old, "resource_version", None)
    if version is None:
        return old == new
    return old == msgspec.structs.replace(new, resource_version=version)


def pod_events(old: Pod, new: Pod, assigned: bool) -> tuple[ClusterEvent, ...]:
    """Returns the events of a changed pod; a generic update if no other event fits."""
    resource = Resource.ASSIGNED_POD if assigned else Resource.UNSCHEDULED_POD
    actions = [action for action, changed in _POD_CHANGES if changed(old, new)]
    return tuple(make_event(resource, action) for action in actions or (Action.UPDATE,))


def node_events(old: Node, new: Node) -> tuple[ClusterEvent, ...]:
    """Returns the events of a changed node; none if scheduling reads nothing of the change."""
    return tuple(make_event(Resource.NODE, action) for action in _node_actions(old, new))


def _scaled_down(old: Pod, new: Pod) -> bool:
    before, after = old.held.requests, new.held.requests
    if before == after:
        return False
    now_held = dict(after)
    return any(now_held.get(name, -1) < amount for name, amount in before)


def _gates_eliminated(old: Pod, new: Pod) -> bool:
    return bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates


def _tolerations_changed(old: Pod, new: Pod) -> bool:
    # Tolerations can be added but not changed, so that their number tells.
    return len(old.spec.tolerations or ()) != len(new.spec.tolerations or ())


def _claims_generated(old: Pod, new: Pod) -> bool:
    return old.status.resource_claim_statuses != new.status.resource_claim_statuses


_POD_CHANGES: tuple[tuple[Action, Callable[[Pod, Pod], bool]], ...] = (
    (Action.UPDATE_POD_LABEL, lambda old, new: old.labels != new.labels),
    (Action.UPDATE_POD_SCALE_DOWN, _scaled_down),
    (Action.UPDATE_POD_GATES_ELIMINATED, _gates_eliminated),
    (Action.UPDATE_POD_TOLERATION, _tolerations_changed),
    (Action.UPDATE_POD_GENERATED_CLAIM, _claims_generated),
)


def _node_actions(old: Node, new: Node) -> Iterator[Action]:
    if old.unschedulable and not new.unschedulable:
        yield Action.UPDATE_NODE_TAINT
    if old.allocatable != new.allocatable:
        yield Action.UPDATE_NODE_ALLOCATABLE
    if old.labels != new.labels:
        yield Action.UPDATE_NODE_LABEL
    if old.taints != new.taints:
        yield Action.UPDATE_NODE_TAINT
    if _conditions(old) != _conditions(new):
        yield Action.UPDATE_NODE_CONDITION
    if old.annotations != new.annotations:
        yield Action.UPDATE_NODE_ANNOTATION
    if old.declared_features != new.declared_features:
        yield Action.UPDATE_NODE_DECLARED_FEATURE


def _conditions(node: Node) -> dict[str, str]:
    return {each.type: each.status for each in node.conditions}
