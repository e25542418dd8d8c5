"""Whether the cluster has the resources that a group of scheduler-plugins must find free."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes
from moorage.objects.pod_group import PodGroup
from moorage.objects.resources import PODS, format_amount

# Sums beyond this are worked with as Python's integers.
_MOST_EXACT = 2**62


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
        free = _most_free(_free_by_row(name, used, nodes))
        if amount > max(0, free):
            gap[name] = format_amount(name, amount - free)
    missing = " ".join(f"{name}:{gap[name]}" for name in sorted(gap))
    return f"resource gap: map[{missing}]" if gap else None


def _free_by_row(name: str, own: dict[int, int], nodes: Nodes) -> NDArray[np.int64]:
    """Returns how much of a resource is free on each node, in the order of visits."""
    place = nodes.resource(name)
    if place is None:
        return np.zeros(0, np.int64)
    free = nodes.allocatable[place] - nodes.requested[place]
    for row, amount in own.items():
        free[row] += amount
    return free[nodes.order]


def _most_free(free: NDArray[np.int64]) -> int:
    """Returns the largest sum over the first nodes, however many these are.

    Only a node whose pods request more than it offers makes a sum smaller.
    """
    if not len(free):
        return 0
    if float(np.abs(free).max()) * len(free) > _MOST_EXACT:
        free = free.astype(object)
    return int(np.cumsum(free).max())
