"""What evicting pods would do: who must go on a node so that a pod fits there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Change, Mask, Nodes, WhatIf
from mooring.cluster.ledger import Ledger
from mooring.framework.attempt import PreFiltered
from mooring.framework.nominated import (
    filter_with_nominated,
    reads_only_room,
    with_pod,
    without_pod,
)
from mooring.framework.profile import Profile
from mooring.framework.run import active_filters, filter_rows
from mooring.objects.pod import Pod
from mooring.objects.resources import PODS
from mooring.objects.workload import PodDisruptionBudget

from .preemption_budgets import breaking
from .preemption_candidates import PRIORITY_SHIFT, Candidates

NO_VICTIMS = "No preemption victims found for incoming pod"


@dataclass(frozen=True)
class DryRun:
    """A pod that fits nowhere, and all that is needed to ask where evicting others would help."""

    profile: Profile
    pod: Pod
    pre_filtered: PreFiltered
    nodes: Nodes
    #: Why evicting does not help, counted.
    reasons: Counter[str]

    @cached_property
    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        return tuple(self.nodes.workloads.budgets)

    def candidates(self, rows: NDArray[np.intp], wanted: int) -> Candidates:
        """Looks at rows in order until there are enough candidates."""
        parts = [Candidates.of(())]
        size = max(wanted, 64)
        for at in range(0, len(rows), size):
            parts.append(self._look_at(rows[at : at + size]))
            found = Candidates.joined(parts)
            enough = found.enough(wanted)
            if enough is not None:
                return found.first(enough)
        return Candidates.joined(parts)

    def _look_at(self, rows: NDArray[np.intp]) -> Candidates:
        ledgers = [self.nodes.ledger(row) for row in rows.tolist()]
        firsts = [ledger.below(self.pod.priority) for ledger in ledgers]
        evictable = [len(ledger.pods) > at for ledger, at in zip(ledgers, firsts, strict=True)]
        without = len(rows) - sum(evictable)
        if without:
            self.reasons[NO_VICTIMS] += without
        lesser = [
            Lesser(int(row), ledger, at)
            for row, ledger, at, any_ in zip(rows, ledgers, firsts, evictable, strict=True)
            if any_
        ]
        if not lesser:
            return Candidates.of(())
        if reads_only_room(self.profile, self.pre_filtered):
            return RoomDryRun(self, lesser).candidates()
        return Candidates.of([found for each in lesser if (found := self._on_row(each))])

    # Row by row: exact for whatever the filters read

    def _on_row(self, lesser: Lesser) -> tuple[int, tuple[Pod, ...], int] | None:
        what_if = WhatIf(self.nodes)
        state = RowState(self, what_if, lesser.row, self.pre_filtered)
        for pod in lesser.pods:
            state = state.without(pod)
        refused = state.refused()
        if refused:
            self.reasons.update(refused)
            return None
        broken = breaking(lesser.pods, self.budgets)
        victims: list[int] = []
        for at in _harmful_first(broken):
            reprieved = state.with_(lesser.pods[at])
            if reprieved.refused():
                victims.append(at)
                reprieved.undo(lesser.pods[at])
            else:
                state = reprieved
        if not victims:
            return None
        chosen = tuple(lesser.pods[at] for at in sorted(victims))
        return lesser.row, chosen, sum(broken[at] for at in victims)


@dataclass(frozen=True, slots=True)
class Lesser:
    """The pods on a row of a lower priority than the pod that is to be placed."""

    row: int
    ledger: Ledger
    first: int

    @property
    def pods(self) -> tuple[Pod, ...]:
        return self.ledger.pods[self.first :]

    def telling(self, gone: Mask) -> Callable[[], tuple[Pod, ...]]:
        pods = self.pods
        return lambda: tuple(pods[at] for at in np.flatnonzero(gone).tolist())


@dataclass(frozen=True, slots=True)
class RowState:
    """One row with some pods taken off, and the prepared values that go with it."""

    run: DryRun
    what_if: WhatIf
    row: int
    pre_filtered: PreFiltered

    def without(self, pod: Pod) -> RowState:
        self.what_if.remove_pod(pod, self.row)
        return self._moved(without_pod, pod)

    def with_(self, pod: Pod) -> RowState:
        self.what_if.add_pod(pod, self.row)
        return self._moved(with_pod, pod)

    def undo(self, pod: Pod) -> None:
        """Takes a pod off the row again; the prepared values of before are still at hand."""
        self.what_if.remove_pod(pod, self.row)

    def refused(self) -> tuple[str, ...]:
        """Why the row does not take the pod as it is now."""
        run = self.run
        row = np.array([self.row], np.intp)
        outcome = filter_with_nominated(run.profile, run.pod, self.pre_filtered, self.what_if, row)
        return tuple(reason for _, why in outcome.refusals() for reason in why.reasons)

    def _moved(self, move: Callable[..., Mapping[str, Any]], pod: Pod) -> RowState:
        prepared = move(self.run.profile, self.pre_filtered.prepared, self.what_if, pod, self.row)
        return replace(self, pre_filtered=replace(self.pre_filtered, prepared=prepared))


class RoomDryRun:
    """Many rows at once, for a pod whose filters see others only by the room that they take."""

    def __init__(self, run: DryRun, lesser: Sequence[Lesser]) -> None:
        self._run = run
        self._lesser = lesser
        self._rows = np.array([each.row for each in lesser], np.intp)
        self._counts = np.array([len(each.ledger.pods) - each.first for each in lesser], np.intp)
        #: Where each row's pods begin in the flat arrays, which hold the pods of all rows.
        self._begins = np.cumsum(self._counts) - self._counts
        self._requests = np.concatenate(
            [each.ledger.requests[:, each.first :] for each in lesser], axis=1
        )
        self._what_if = WhatIf(run.nodes)
        self._room = [
            plugin
            for plugin in active_filters(run.profile, run.pre_filtered)
            if plugin.reads & Change.REQUESTED
        ]

    def candidates(self) -> Candidates:
        run = self._run
        sums = np.add.reduceat(self._requests, self._begins, axis=1)
        self._what_if.shift(self._rows, -sums)
        outcome = filter_with_nominated(
            run.profile, run.pod, run.pre_filtered, self._what_if, self._rows
        )
        for reason, count in outcome.reason_counts():
            if count:
                run.reasons[reason] += count
        fitting = np.flatnonzero(outcome.feasible)
        broken = self._broken()
        gone = self._reprieve(fitting, self._order(broken))
        return self._weighed(fitting, gone, broken)

    def _broken(self) -> Mask:
        """Per pod of the flat arrays whether evicting it breaks a budget."""
        budgets = self._run.budgets
        if not budgets:
            return np.zeros(self._requests.shape[1], np.bool_)
        broken = [flag for each in self._lesser for flag in breaking(each.pods, budgets)]
        return np.array(broken, np.bool_)

    def _order(self, broken: Mask) -> NDArray[np.intp]:
        """The pods of each row in the order in which they are spared: budget breakers first."""
        if not broken.any():
            return np.arange(len(broken))
        owner = np.repeat(np.arange(len(self._rows)), self._counts)
        return np.lexsort((np.arange(len(broken)), ~broken, owner))

    def _reprieve(self, fitting: NDArray[np.intp], order: NDArray[np.intp]) -> Mask:
        """Per pod of the flat arrays whether it must go: all at first, then one by one less."""
        gone = np.zeros(self._requests.shape[1], np.bool_)
        crowd = self._crowd()
        for turn in range(int(self._counts[fitting].max(initial=0))):
            places = fitting[self._counts[fitting] > turn]
            pods = order[self._begins[places] + turn]
            rows = self._rows[places]
            self._what_if.shift(rows, self._requests[:, pods])
            spared = self._fits(rows, crowd)
            gone[pods[~spared]] = True
            self._what_if.shift(rows[~spared], -self._requests[:, pods[~spared]])
        return gone

    def _crowd(self) -> NDArray[np.int64] | None:
        """What nominated pods take on the rows that have some."""
        weight = self._run.nodes.nominated_weight(self._run.pod)
        if weight is None or not weight[self._run.nodes.resources[PODS], self._rows].any():
            return None
        return weight

    def _fits(self, rows: NDArray[np.intp], crowd: NDArray[np.int64] | None) -> Mask:
        fits = self._has_room(rows)
        if crowd is not None:
            self._what_if.shift(rows, crowd[:, rows])
            fits = fits & self._has_room(rows)
            self._what_if.shift(rows, -crowd[:, rows])
        return fits

    def _has_room(self, rows: NDArray[np.intp]) -> Mask:
        # The other filters do not read what was moved, and they accept these rows.
        run = self._run
        return filter_rows(
            run.profile, run.pod, run.pre_filtered, self._what_if, rows, self._room
        ).feasible

    def _weighed(self, fitting: NDArray[np.intp], gone: Mask, broken: Mask) -> Candidates:
        counts = self._per_row(gone.astype(np.int64))[fitting]
        # A row on which everybody could be spared is none on which evicting helps.
        fitting = fitting[counts > 0]
        priorities = -np.concatenate(
            [np.array(each.ledger.priorities[each.first :], np.int64) for each in self._lesser]
        )
        starts = np.concatenate([each.ledger.starts[each.first :] for each in self._lesser])
        lowest = np.iinfo(np.int64).min
        highest = np.maximum.reduceat(np.where(gone, priorities, lowest), self._begins)
        owner = np.repeat(np.arange(len(self._rows)), self._counts)
        most_important = gone & (priorities == highest[owner])
        earliest = np.minimum.reduceat(np.where(most_important, starts, np.inf), self._begins)
        shifted = np.where(gone, priorities + PRIORITY_SHIFT, 0)
        return Candidates(
            self._rows[fitting],
            self._per_row((gone & broken).astype(np.int64))[fitting],
            highest[fitting],
            self._per_row(shifted)[fitting],
            counts[counts > 0],
            earliest[fitting],
            list(self._telling(fitting, gone)),
        )

    def _per_row(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.add.reduceat(values, self._begins)

    def _telling(
        self, fitting: NDArray[np.intp], gone: Mask
    ) -> Iterator[Callable[[], tuple[Pod, ...]]]:
        for at in fitting.tolist():
            begin = self._begins[at]
            yield self._lesser[at].telling(gone[begin : begin + self._counts[at]])


def _harmful_first(broken: Sequence[bool]) -> list[int]:
    """The places in the order of being spared: those that break a budget first."""
    return sorted(range(len(broken)), key=lambda at: not broken[at])
