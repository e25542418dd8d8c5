"""Decides when a pod that PodTopologySpread rejected is tried again."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from moorage.framework.wakeups import Topics
from moorage.objects.node import Node
from moorage.objects.placement_rules import TopologySpreadConstraint
from moorage.objects.pod import Pod
from moorage.objects.selector import SelectorError, marks_of

from .spread_constraints import HARD, own_constraints


def pod_helps(waiting: Pod, old: Pod | None, new: Pod | None) -> bool:
    """Whether a pod that came, changed or went may let the waiting pod in."""
    if not all(_is_involved(each, waiting) for each in (old, new) if each is not None):
        return False
    if old is not None and new is not None:
        return _update_helps(waiting, old, new)
    changed = new if old is None else old
    if not waiting.spec.topology_spread_constraints:
        # Services decide which pods default constraints count, and they are not known here.
        return True
    try:
        constraints = own_constraints(waiting, HARD)
    except SelectorError:
        return True
    return changed is not None and any(each.selects(changed.labels) for each in constraints)


def _update_helps(waiting: Pod, old: Pod, new: Pod) -> bool:
    try:
        constraints = own_constraints(waiting, HARD)
    except SelectorError:
        return True
    honored = any(each.honors_taints for each in constraints)
    if honored and new.uid == waiting.uid and _tolerations(old) != _tolerations(new):
        return True
    if old.labels == new.labels:
        return False
    return not waiting.spec.topology_spread_constraints or any(
        each.selects(old.labels) != each.selects(new.labels) for each in constraints
    )


def node_helps(
    defaults: Iterable[TopologySpreadConstraint],
    waiting: Pod,
    old: Node | None,
    new: Node | None,
) -> bool:
    """Whether a node that came, changed or went may let the waiting pod in."""
    written = waiting.spec.topology_spread_constraints or defaults
    keys = {each.topology_key for each in written if each.when_unsatisfiable == HARD}
    complete_before = old is not None and keys <= old.labels.keys()
    complete_now = new is not None and keys <= new.labels.keys()
    if old is None or new is None or complete_before != complete_now:
        return complete_before or complete_now
    moved = any(old.labels.get(key) != new.labels.get(key) for key in keys)
    return complete_now and (moved or old.taints != new.taints)


# What rejected pods wait for


def _pods_waited_for(waiting: Pod) -> list[Hashable] | None:
    """Returns labels of the pods that count, each with the namespace; None if these are unknown."""
    if not waiting.spec.topology_spread_constraints:
        return [(waiting.namespace, None)]
    try:
        constraints = own_constraints(waiting, HARD)
    except SelectorError:
        return None
    topics: list[Hashable] = []
    for each in constraints:
        marks = () if each.selector is None else each.selector.marks
        if marks is None:
            return [(waiting.namespace, None)]
        topics += [(waiting.namespace, mark) for mark in marks]
    return topics


def _pods_changed(old: Pod | None, new: Pod | None) -> list[Hashable]:
    pods = [each for each in (old, new) if each is not None]
    if not all(each.has_place for each in pods):
        return []
    if old is not None and new is not None and old.labels == new.labels:
        return []
    topics: list[Hashable] = [(each.namespace, None) for each in pods]
    topics += [(each.namespace, mark) for each in pods for mark in marks_of(each.labels)]
    return topics


POD_TOPICS = Topics(_pods_changed, _pods_waited_for)


def _is_involved(pod: Pod, waiting: Pod) -> bool:
    if pod.uid == waiting.uid:
        return True
    return pod.namespace == waiting.namespace and bool(pod.node_name or pod.nominated_node_name)


def _tolerations(pod: Pod) -> tuple[object, ...]:
    return pod.spec.tolerations or ()
