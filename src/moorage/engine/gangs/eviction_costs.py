"""Finds the cheapest evictions that make room for like members: counted, row by row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes
from moorage.framework.victim_units import VictimUnit
from moorage.objects.pod import Pod
from moorage.objects.resources import PODS

AmountArray = NDArray[np.int64]

#: What it costs to evict units: broken budgets first, then pods, then their importance.
Cost = tuple[int, int, int]

# So many rows are compared, or twice as many as members are short, so that it does not take long.
_MOST_ROWS = 256

_HOPELESS = np.iinfo(np.int64).max // 4


def cost_of(units: Iterable[VictimUnit]) -> Cost:
    """Returns the cost of evicting some units."""
    chosen = list(units)
    return (
        sum(unit.violations for unit in chosen),
        sum(len(unit.pods) for unit in chosen),
        sum(unit.priority for unit in chosen),
    )


@dataclass(frozen=True, slots=True)
class LikeMembers:
    """Members that every node answers alike and that depend on resources only."""

    pods: Sequence[Pod]
    #: int64[resource]: what one of them takes.
    asked: AmountArray
    #: Per row how many of them it takes once all lesser pods are gone; 0 where filters reject it.
    most: AmountArray


@dataclass(frozen=True, slots=True)
class RowEvictions:
    """The units to evict on a row so that it takes that many more members."""

    row: int
    more: int
    units: tuple[VictimUnit, ...]


@dataclass(frozen=True, slots=True)
class EvictionPlan:
    """Which units to evict, and how many members go to which row."""

    units: tuple[VictimUnit, ...]
    counts: Mapping[int, int]


@dataclass(slots=True)
class EvictionCosts:
    """The free amounts of each row, and the units that could make more room there."""

    names: Sequence[str]
    #: int64[resource, row].
    free: AmountArray
    #: The units that are on one row alone, by row.
    on_row: Mapping[int, Sequence[VictimUnit]]

    @classmethod
    def of(
        cls, names: Sequence[str], nodes: Nodes, units: Sequence[VictimUnit]
    ) -> EvictionCosts | None:
        """Counts what is free now; None if a resource has no column."""
        places = [place for name in names if (place := nodes.resource(name)) is not None]
        if len(places) < len(names):
            return None
        at, on_row = np.array(places, np.intp), defaultdict[int, list[VictimUnit]](list)
        free = (nodes.allocatable[at] - nodes.requested[at])[:, nodes.everything]
        for unit in units:
            row = nodes.row(unit.pods[0].node_name) if len(unit.pods) == 1 else None
            if row is not None:
                on_row[row].append(unit)
        return cls(names, free, dict(on_row))

    def without(self, units: Iterable[VictimUnit], nodes: Nodes) -> EvictionCosts:
        """Returns the same once some units are gone."""
        free, on_row = self.free.copy(), dict(self.on_row)
        for unit in units:
            for pod in unit.pods:
                row = nodes.row(pod.node_name)
                if row is not None:
                    free[:, row] += self.takes(pod.held.requests)
                    on_row[row] = [each for each in on_row.get(row, ()) if each is not unit]
        return EvictionCosts(self.names, free, on_row)

    def after(self, plan: EvictionPlan, members: LikeMembers, nodes: Nodes) -> EvictionCosts:
        """Returns the same once a plan is carried out."""
        left = self.without(plan.units, nodes)
        for row, count in plan.counts.items():
            left.free[:, row] -= count * members.asked
        return left

    def takes(self, requests: Iterable[tuple[str, int]]) -> AmountArray:
        """Returns what a pod takes of the counted resources, its place as a pod included."""
        held = {**dict(requests), PODS: 1}
        return np.array([held.get(name, 0) for name in self.names], np.int64)

    def cheapest(self, members: LikeMembers, rows: NDArray[np.intp]) -> EvictionPlan | None:
        """Returns how rows take all members at the least cost; None if they cannot.

        Rows are independent of each other, so that the best options can be combined step by step:
        after each row, the least cost of having made room for 0, 1, 2, ... more members.
        """
        wanted = members.asked > 0
        room = self.free[wanted][:, rows] // members.asked[wanted][:, None]
        present = np.minimum(np.clip(room.min(axis=0), 0, None), members.most[rows])
        short = len(members.pods) - int(present.sum())
        chosen: list[RowEvictions] = []
        if short > 0:
            gains = members.most[rows] - present
            found = self._make_up(members, rows, (present, gains), short)
            if found is None:
                return None
            chosen = found
        room_of = dict(zip(rows.tolist(), present.tolist(), strict=True))
        for each in chosen:
            room_of[each.row] += each.more
        # Rows where somebody goes are filled first.
        order = [*(each.row for each in chosen), *room_of]
        units = tuple(unit for each in chosen for unit in each.units)
        return EvictionPlan(units, _fill(dict.fromkeys(order), room_of, len(members.pods)))

    def _make_up(
        self,
        members: LikeMembers,
        rows: NDArray[np.intp],
        counts: tuple[AmountArray, AmountArray],
        short: int,
    ) -> list[RowEvictions] | None:
        """Makes room for the missing members, on the rows that promise most."""
        present, gains = counts
        useful = np.flatnonzero(gains > 0)
        lesser = np.array([len(self.on_row.get(row, ())) for row in rows[useful].tolist()])
        promising = np.lexsort((rows[useful], lesser / gains[useful]))
        useful = useful[promising[: max(_MOST_ROWS, 2 * short)]]
        options = [
            self._options(members, int(rows[at]), int(present[at]), min(int(gains[at]), short))
            for at in useful.tolist()
        ]
        return _put_together([each for each in options if each], short)

    def _options(
        self, members: LikeMembers, row: int, present: int, most: int
    ) -> list[RowEvictions]:
        found: list[RowEvictions] = []
        for more in range(1, most + 1):
            missing = members.asked * (present + more) - self.free[:, row]
            known = self.on_row.get(row, ())
            harmless = [unit for unit in known if not unit.violations]
            units = self._cover(missing, harmless) or self._cover(missing, known)
            if units is None:
                break
            found.append(RowEvictions(row, more, units))
        return found

    def _cover(
        self, missing: AmountArray, units: Sequence[VictimUnit]
    ) -> tuple[VictimUnit, ...] | None:
        """Takes the unit that covers most of what is missing until nothing is, then drops some.

        With one scarce resource no fewer units would do.
        """
        left = missing.copy()
        # The least important first, so that of equals they go.
        pool = [(unit, self.takes(unit.pods[0].held.requests)) for unit in reversed(units)]
        chosen: list[tuple[VictimUnit, AmountArray]] = []
        while (left > 0).any():
            wanted = left > 0
            shares = [
                float((np.minimum(takes, left)[wanted] / left[wanted]).sum()) for _, takes in pool
            ]
            best = max(range(len(pool)), key=lambda at: (shares[at], -at), default=-1)
            if best < 0 or shares[best] <= 0:
                return None
            chosen.append(pool.pop(best))
            left -= chosen[-1][1]
        for number in range(len(chosen) - 1, -1, -1):
            if ((left + chosen[number][1]) <= 0).all():
                left += chosen.pop(number)[1]
        return tuple(unit for unit, _ in chosen)


def _fill(order: Iterable[int], room_of: Mapping[int, int], count: int) -> dict[int, int]:
    """Assigns members to rows in an order."""
    counts: dict[int, int] = {}
    for row in order:
        here = min(count, room_of[row])
        if here:
            counts[row] = here
            count -= here
    return counts


def _put_together(
    options: Sequence[Sequence[RowEvictions]], short: int
) -> list[RowEvictions] | None:
    """Combines one option of some rows each for that many members, at the least cost."""
    units = [unit for each in options for option in each for unit in option.units]
    weigh = _Scale(units)
    best = np.full(short + 1, _HOPELESS, np.int64)
    best[0] = 0
    taken = np.zeros((len(options), short + 1), np.int64)
    for number, choices in enumerate(options):
        before = best.copy()
        for choice in choices:
            # What is more than needed is no better than what is needed.
            reached = np.arange(short + 1)
            sources = np.maximum(reached - choice.more, 0)
            costs = before[sources] + weigh(choice.units)
            is_better = (costs < best) & (reached > 0)
            best[is_better] = costs[is_better]
            taken[number, is_better] = choice.more
    if best[short] >= _HOPELESS:
        return None
    found: list[RowEvictions] = []
    left = short
    for number in range(len(options) - 1, -1, -1):
        more = int(taken[number, left])
        if more:
            found.append(next(each for each in options[number] if each.more == more))
            left = max(0, left - more)
    return found


class _Scale:
    """Turns costs into numbers with the same order."""

    def __init__(self, units: Sequence[VictimUnit]) -> None:
        levels = sorted({unit.priority for unit in units})
        self._levels = {priority: level for level, priority in enumerate(levels)}
        self._pod = 1 + len(levels) * len(units)
        self._violation = self._pod * (1 + len(units))

    def __call__(self, units: Sequence[VictimUnit]) -> int:
        return sum(
            unit.violations * self._violation
            + len(unit.pods) * self._pod
            + self._levels[unit.priority]
            for unit in units
        )
