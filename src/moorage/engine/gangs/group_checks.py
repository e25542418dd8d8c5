"""Checks a group before it is tried: its pods, and what must be free for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from itertools import accumulate

from moorage.cluster import Nodes
from moorage.objects.pod import Pod
from moorage.objects.pod_group import EVICTS, PodGroup
from moorage.objects.resources import PODS, format_amount

_ALL = "all pods in a single pod group should have the same"
_AS_GROUP = " as the pod group's preemption policy"


def find_fault(
    group: PodGroup,
    members: Sequence[Pod],
    placed: Iterable[Pod],
    profiles: Container[str],
    *,
    ranked_as_one: bool,
) -> str | None:
    """Returns why a group cannot be tried as it is; None if it can.

    With `ranked_as_one`, pods on nodes are looked at as well, and priorities are compared.
    """
    first = members[0]
    # The first one can differ only from the group itself.
    alike = first.spec if _find_rank(first, first, group) is None else None
    for pod in (*members, *placed) if ranked_as_one else members:
        if pod.spec is alike:
            # What is compared is of the template.
            continue
        fault = _find_stranger(pod, first)
        if fault is None and ranked_as_one:
            fault = _find_rank(pod, first, group)
        if fault is not None:
            return fault
        alike = pod.spec
    name = first.spec.scheduler_name
    return None if name in profiles else f'profile not found for scheduler name "{name}"'


def _find_stranger(pod: Pod, first: Pod) -> str | None:
    found, name = pod.spec.scheduler_name, first.spec.scheduler_name
    return None if found == name else f'{_ALL} .spec.schedulerName set, got: "{found}" and "{name}"'


def _find_rank(pod: Pod, first: Pod, group: PodGroup) -> str | None:
    priority, policy = group.priority_beside(first), group.policy_beside(first)
    own = pod.spec.preemption_policy or EVICTS
    if pod.priority != priority:
        return f"{_ALL} priority as the pod group's priority, got {pod.priority} and {priority}"
    if own != policy:
        of_group = "" if group.preemption_policy is None else _AS_GROUP
        return f"{_ALL} preemption policy{of_group}, got {own} and {policy}"
    return None


def find_gap(group: PodGroup, nodes: Nodes) -> str | None:
    """Returns what the cluster lacks of a group's `minResources`; None if it lacks nothing.

    As in Coscheduling, all nodes count, whether or not they take its pods, and what its own pods
    use counts as free. A group that has its minimum of pods on nodes lacks nothing.
    """
    placed = nodes.groups.placed(group.group_key).values()
    if not group.min_resources or len(placed) >= group.min_count:
        return None
    own: Counter[tuple[str, int]] = Counter()
    for pod in placed:
        row = nodes.row(pod.node_name)
        if row is not None:
            own[PODS, row] += 1
            for name, amount in pod.held.requests:
                own[name, row] += amount
    gap = {}
    for name, amount in (*group.min_resources, (PODS, group.min_count)):
        used = {row: taken for (resource, row), taken in own.items() if resource == name}
        # The first nodes that have enough together do. Only a node whose pods request more than it
        # offers makes a sum smaller.
        free = max(accumulate(_list_free(name, used, nodes)), default=0)
        if amount > max(0, free):
            gap[name] = format_amount(name, amount - free)
    missing = " ".join(f"{name}:{gap[name]}" for name in sorted(gap))
    return f"resource gap: map[{missing}]" if gap else None


def _list_free(name: str, own: dict[int, int], nodes: Nodes) -> list[int]:
    """Returns how much of a resource is free on each node, in the order of visits."""
    place = nodes.resource(name)
    if place is None:
        return []
    free = nodes.allocatable[place] - nodes.requested[place]
    for row, amount in own.items():
        free[row] += amount
    listed: list[int] = free[nodes.order].tolist()
    return listed
