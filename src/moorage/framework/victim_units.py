"""Units of victims: pods, and groups that are evicted as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes
from moorage.cluster.pods import LesserPods, start_of
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup

from .disruption_budgets import BudgetIndex

# No pod has this priority.
_ABOVE_ALL = 2**31


@dataclass(frozen=True, slots=True)
class VictimUnit:
    """Pods that are evicted together or not at all."""

    pods: tuple[Pod, ...]
    priority: int
    #: Whether they belong to a group; among equally important units, groups are spared first.
    is_group: bool
    #: For how many of them eviction is more than a budget allows.
    violations: int = 0

    @property
    def importance(self) -> tuple[int, bool, int, float]:
        """A sort key that puts the most important first."""
        return (
            -self.priority,
            not self.is_group,
            -len(self.pods),
            min(start_of(pod) for pod in self.pods),
        )


def find_units(nodes: Nodes, priority: int, among: Iterable[Pod] | None = None) -> list[VictimUnit]:
    """Returns units of lower priority, of all pods or of some; the most important first."""
    if among is None:
        among = (pod for row in nodes.order.tolist() for pod in nodes.pods(row).values())
    lesser = [each for each in _units(nodes, among, priority) if each.priority < priority]
    return sorted(lesser, key=lambda unit: unit.importance)


def find_units_on(nodes: Nodes, row: int, priority: int) -> list[VictimUnit]:
    """Returns units of lower priority with a pod on a row, the most important first."""
    return find_units(nodes, priority, nodes.pods(row).values())


def choose_lesser(
    nodes: Nodes, priority: int, most: int, domains: NDArray[np.intp], seed: int
) -> list[tuple[Pod, ...]]:
    """Yields two selections of that many pods of lower priority; none if there are fewer.

    First all such pods of some rows, those of a domain together, from a row on that the seed
    chooses. Then the least important ones of every row.
    """
    lesser = nodes.lesser_pods(priority, nodes.order)
    if len(lesser.slots) <= most:
        return []
    rows = np.roll(nodes.order, -(seed % len(nodes.order)))
    later = (domains[rows] - domains[rows[0]]) % (int(domains.max()) + 2)
    ranks = np.empty(len(nodes.alive), np.intp)
    ranks[rows[np.argsort(later, kind="stable")]] = np.arange(len(rows))
    places = np.repeat(np.arange(len(lesser.rows)), lesser.counts)
    by_row = np.argsort(ranks[lesser.rows][places], kind="stable")[:most]
    # The pods of a row come with the most important first.
    from_last = (lesser.begins + lesser.counts)[places] - np.arange(len(places))
    evenly = np.argsort(from_last, kind="stable")[:most]
    return [lesser.named(lesser.slots[chosen]) for chosen in (by_row, evenly)]


def find_lone_units(nodes: Nodes, rows: NDArray[np.intp], priority: int) -> LesserPods | None:
    """Returns the units of many rows as columns; None if pods must go together with others.

    It is None, too, if the priority of a pod differs from that of its group.
    """
    everyone = nodes.lesser_pods(_ABOVE_ALL, rows)
    grouped = np.zeros(len(everyone.slots), np.bool_)
    for at, pod in enumerate(everyone.named(everyone.slots)):
        group = nodes.groups.of(pod)
        if group is None:
            continue
        grouped[at] = True
        is_whole = group.is_evicted_whole and pod.priority < priority
        if is_whole or group.priority_beside(pod) != pod.priority:
            return None
    lesser = np.flatnonzero(everyone.priorities < priority)
    places = np.repeat(np.arange(len(everyone.rows)), everyone.counts)[lesser]
    arrivals = everyone.table.arrivals_of(everyone.slots[lesser])
    starts, ranks = everyone.starts[lesser], everyone.priorities[lesser]
    return everyone.take(lesser[np.lexsort((arrivals, starts, ~grouped[lesser], -ranks, places))])


def count_disruptions(victims: Iterable[Pod], nodes: Nodes) -> int:
    """Counts groups that are evicted as a whole, and pods of other groups."""
    if not nodes.groups.links:
        return 0
    found: set[object] = set()
    for pod in victims:
        group = nodes.groups.of(pod)
        if group is not None:
            found.add(group.group_key if group.is_evicted_whole else pod.uid)
    return len(found)


def _units(nodes: Nodes, pods: Iterable[Pod], priority: int) -> Iterator[VictimUnit]:
    """Returns the units of some pods; of pods without a group, only those of lower priority."""
    seen: set[str] = set()
    groups = nodes.groups
    for pod in pods:
        group = groups.of(pod)
        if group is None:
            if pod.priority < priority:
                yield VictimUnit((pod,), pod.priority, is_group=False)
        elif not group.is_evicted_whole:
            yield VictimUnit((pod,), group.priority_beside(pod), is_group=True)
        elif pod.uid not in seen:
            members = _placed_members(group, nodes)
            seen.update(each.uid for each in members)
            yield VictimUnit(members, group.priority_beside(pod), is_group=True)


def _placed_members(group: PodGroup, nodes: Nodes) -> tuple[Pod, ...]:
    """Returns the members of a group that are on known nodes."""
    placed = nodes.groups.placed(group.group_key).values()
    return tuple(pod for pod in placed if nodes.row(pod.node_name) is not None)


def makes_way(other: Pod, priority: int) -> bool:
    """Whether a less important pod is leaving because a scheduler evicted it."""
    return (
        other.priority < priority
        and other.terminating
        and any(
            condition.type == "DisruptionTarget"
            and condition.status == "True"
            and condition.reason == "PreemptionByScheduler"
            for condition in other.status.conditions or ()
        )
    )


def mark_violations(units: Sequence[VictimUnit], budgets: BudgetIndex) -> list[VictimUnit]:
    """Yields units with the number of their pods that would break a budget, by importance."""
    broken = iter(budgets.breaking([pod for unit in units for pod in unit.pods]))
    return [replace(unit, violations=sum(next(broken) for _ in unit.pods)) for unit in units]


def spare_order(units: Sequence[VictimUnit]) -> list[VictimUnit]:
    """Returns the units in the order in which they are spared: those that break a budget first."""
    return sorted(units, key=lambda unit: not unit.violations)
