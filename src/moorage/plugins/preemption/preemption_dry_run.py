"""What evicting pods would do: who must go on a node so that a pod fits there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, View, WhatIf
from moorage.cluster.pods import LesserPods
from moorage.cluster.usage import Usage
from moorage.framework.attempt import PreFiltered
from moorage.framework.disruption_budgets import BudgetIndex
from moorage.framework.nominated import (
    filter_with_nominated,
    find_counting,
    make_what_if,
    sees_only_counts,
    with_pod,
    without_pod,
)
from moorage.framework.plugin import Filter
from moorage.framework.points import filter_rows
from moorage.framework.profile import Profile
from moorage.framework.status import BrokenRowsError, PluginError
from moorage.framework.victim_units import (
    VictimUnit,
    find_lone_units,
    find_units_on,
    mark_violations,
    spare_order,
)
from moorage.objects.lazy_property import lazy_property
from moorage.objects.pod import Pod

from .preemption_candidates import NO_CANDIDATES, PRIORITY_SHIFT, Candidates

# Rows that are looked at together, at the least: fewer save nothing.
_AT_ONCE = 64

# Further rows that are looked at one by one before there may be enough: what finds their pods
# looks through all pods, which costs as much as some rows.
_FEW = 16

# The most work of taking pods off rows and putting them back one by one: about half a second. It is
# counted, in nanoseconds or so, and not measured: decisions are the same on any machine.
_MOST_WORK = 450_000_000
_WORK_PER_POD = 40_000
_WORK_PER_SPARED_POD = 110_000
# A term of the pod is counted anew for each pod that moves, one of that pod is matched.
_WORK_PER_TERM = 5_000
_WORK_PER_OTHERS_TERM = 1_000

# Errors that are told, at the most: each node may have one of its own.
_MOST_ERRORS = 16

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_LOOKED_AT = "node(s) not looked at: too much work for one attempt"


#: A row, the pods that must go there, and how many of them break a budget.
RowCandidate = tuple[int, tuple[Pod, ...], int]


@dataclass(slots=True)
class DryRunWork:
    """How much work was done so far, where rows are looked at one by one."""

    done: int = 0

    @property
    def is_spent(self) -> bool:
        return self.done >= _MOST_WORK

    def count(self, moved: Sequence[Pod], per_pod: int, more: int) -> None:
        """Counts that pods are taken off a row, or put back there."""
        terms = sum(len(pod.terms.anti_affinity) for pod in moved)
        self.done += len(moved) * (per_pod + more) + terms * _WORK_PER_OTHERS_TERM


class DryRun(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A pod that fits nowhere, and all that is needed to ask where evicting others would help."""

    profile: Profile
    pod: Pod
    pre_filtered: PreFiltered
    nodes: View
    #: Why evicting does not help, counted.
    reasons: Counter[str]
    work: DryRunWork = msgspec.field(default_factory=DryRunWork)
    #: What went wrong, each text once, and on which row.
    errors: dict[str, int] = msgspec.field(default_factory=dict)

    @lazy_property
    def budgets(self) -> BudgetIndex:
        return BudgetIndex(self.nodes.workloads.budgets)

    @property
    def counting(self) -> tuple[Filter[Any], ...]:
        """The filters to which pods that leave matter by what is counted of them."""
        return find_counting(self.profile, self.pre_filtered.skipped)

    @lazy_property
    def in_columns(self) -> bool:
        """Whether the filters see other pods only by what is counted of them."""
        return sees_only_counts(self.profile, self.pod, self.pre_filtered, self.nodes)

    @lazy_property
    def _work_per_pod(self) -> int:
        """What the pod's own rules add to the work of moving another pod."""
        terms, spreads = self.pod.terms, self.pod.spec.topology_spread_constraints or ()
        rules = len(terms.affinity) + len(terms.anti_affinity) + len(spreads)
        return rules * (_WORK_PER_TERM + len(self.nodes))

    def candidates(self, rows: NDArray[np.intp], wanted: int) -> Candidates:
        """Looks at rows in order until there are enough candidates, or it is too much work.

        A row on which a filter fails is no candidate. Raises PluginError if that leaves none.
        """
        found = NO_CANDIDATES
        for some in self._portions(rows, wanted):
            if self.work.is_spent:
                self.reasons[NOT_LOOKED_AT] += len(some)
                continue
            found = found.followed_by(self._look_at(some))
            enough = found.enough(wanted)
            if enough is not None:
                return found.first(enough)
        if self.errors and not len(found):
            # In the order of the nodes, wherever the look at them began.
            places = {row: at for at, row in enumerate(self.nodes.order.tolist())}
            told = sorted(self.errors, key=lambda text: places[self.errors[text]])
            raise PluginError(_join(told))
        return found

    def note_errors(self, error: BrokenRowsError) -> None:
        """Notes what a filter raised on some rows."""
        for row in error.rows[:_MOST_ERRORS]:
            self._note_error(row, str(error.on(row)))

    def note_all_spared(self, row: int) -> None:
        """Notes a row on which the pod fits without any eviction: only an extender refuses it.

        kube-scheduler takes that for an error.
        """
        name = self.nodes.name(row)
        self._note_error(row, f'expected at least one victim pod on node "{name}"')

    def _note_error(self, row: int, text: str) -> None:
        if len(self.errors) < _MOST_ERRORS:
            self.errors.setdefault(text, row)

    def _portions(self, rows: NDArray[np.intp], wanted: int) -> Iterator[NDArray[np.intp]]:
        """Yields the rows in portions that are looked at together."""
        # Mostly nearly every row is a candidate. In columns a second look costs as much as many
        # rows, so each is larger than all before it; one by one every row costs the same.
        size = max(wanted + wanted // 4, _AT_ONCE) if self.in_columns else max(wanted, 1)
        at = 0
        while at < len(rows):
            yield rows[at : at + size]
            at += size
            size = at + _AT_ONCE if self.in_columns else _FEW

    def _look_at(self, portion: NDArray[np.intp]) -> Candidates:
        lesser = self._find_lesser(portion)
        if lesser is None:
            return self._look_at_units(portion)
        without = len(portion) - len(lesser.rows)
        if without:
            self.reasons[NO_VICTIMS] += without
        if not len(lesser.rows):
            return NO_CANDIDATES
        if self.in_columns:
            return self._look_in_columns(portion, lesser)
        rows = lesser.rows.tolist()
        return self._one_by_one(rows, lambda at: self._on_row(rows[at], lesser.pods(at)))

    def _look_in_columns(self, portion: NDArray[np.intp], lesser: LesserPods) -> Candidates:
        """Looks at all rows together; once more without those on which a filter fails."""
        try:
            return CountsDryRun(self, lesser).candidates()
        except BrokenRowsError as error:
            self.note_errors(error)
            return self._look_at(portion[~np.isin(portion, error.rows)])

    def _one_by_one(
        self, rows: list[int], look: Callable[[int], RowCandidate | None]
    ) -> Candidates:
        """Looks at rows by their places until that is too much work."""
        candidates = []
        for at in range(len(rows)):
            if self.work.is_spent:
                self.reasons[NOT_LOOKED_AT] += len(rows) - at
                break
            found = look(at)
            if found is not None:
                candidates.append(found)
        return Candidates.of(candidates)

    # Where pods of groups may have to go

    def _find_lesser(self, portion: NDArray[np.intp]) -> LesserPods | None:
        """Who may have to go on some rows; None if they are to be looked at unit by unit."""
        if not self._are_grouped(portion):
            return self.nodes.lesser_pods(self.pod.priority, portion)
        if not self.in_columns:
            return None
        lesser = find_lone_units(self.nodes, portion, self.pod.priority)
        if lesser is None or not self.budgets:
            return lesser
        by_row = (lesser.pods(at) for at in range(len(lesser.rows)))
        # Among equals, units are evicted in the order in which budgets have them spared.
        return None if any(any(self.budgets.breaking(pods)) for pods in by_row) else lesser

    def _are_grouped(self, rows: NDArray[np.intp]) -> bool:
        """Whether pods of groups are on some of the rows."""
        groups, name = self.nodes.groups, self.nodes.name
        return groups.are_placed and any(groups.are_on(name(row)) for row in rows.tolist())

    def _look_at_units(self, portion: NDArray[np.intp]) -> Candidates:
        rows = portion.tolist()
        return self._one_by_one(rows, lambda at: self._by_units(rows[at]))

    def _by_units(self, row: int) -> RowCandidate | None:
        """Returns who must go on one row, where some go together with pods on other rows."""
        units = find_units_on(self.nodes, row, self.pod.priority)
        if not units:
            self.reasons[NO_VICTIMS] += 1
            return None
        pods = [pod for unit in units for pod in unit.pods]
        state = RowState(self, WhatIf(self.nodes), row, self.pre_filtered)
        self.work.count(pods, _WORK_PER_POD, self._work_per_pod)
        for unit in units:
            state = state.without_unit(unit)
        refused = state.refused()
        if refused:
            self.reasons.update(refused)
            return None
        self.work.count(pods, _WORK_PER_SPARED_POD, self._work_per_pod)
        units = mark_violations(units, self.budgets)
        gone: list[VictimUnit] = []
        for unit in spare_order(units):
            spared = state.with_unit(unit)
            if spared.refused():
                gone.append(unit)
                spared.undo_unit(unit)
            else:
                state = spared
        if not gone:
            self.note_all_spared(row)
            return None
        gone.sort(key=lambda unit: unit.importance)
        victims = tuple(pod for unit in gone for pod in unit.pods)
        return row, victims, sum(unit.violations for unit in gone)

    def _on_row(self, row: int, lesser: Sequence[Pod]) -> RowCandidate | None:
        """Returns who must go on one row: exact for whatever the filters read."""
        state = RowState(self, WhatIf(self.nodes), row, self.pre_filtered)
        self.work.count(lesser, _WORK_PER_POD, self._work_per_pod)
        for pod in lesser:
            state = state.without(pod)
        refused = state.refused()
        if refused:
            self.reasons.update(refused)
            return None
        self.work.count(lesser, _WORK_PER_SPARED_POD, self._work_per_pod)
        broken = self.budgets.breaking(lesser)
        victims: list[int] = []
        for at in _harmful_first(broken):
            reprieved = state.with_(lesser[at])
            if reprieved.refused():
                victims.append(at)
                reprieved.undo(lesser[at])
            else:
                state = reprieved
        if not victims:
            self.note_all_spared(row)
            return None
        chosen = tuple(lesser[at] for at in sorted(victims))
        return row, chosen, sum(broken[at] for at in victims)


@dataclass(frozen=True, slots=True)
class RowState:
    """One row with some pods taken off, and the prepared values that go with it."""

    run: DryRun
    what_if: WhatIf
    row: int
    pre_filtered: PreFiltered

    def without(self, pod: Pod) -> RowState:
        self.what_if.remove_pod(pod, self.row)
        return self._move(without_pod, pod, self.row)

    def with_(self, pod: Pod) -> RowState:
        self.what_if.add_pod(pod, self.row)
        return self._move(with_pod, pod, self.row)

    def without_unit(self, unit: VictimUnit) -> RowState:
        """Without pods that leave together; on other rows they count only for what is prepared."""
        state = self
        for pod, row in self._rows(unit):
            state = state.without(pod) if row == self.row else state._move(without_pod, pod, row)
        return state

    def with_unit(self, unit: VictimUnit) -> RowState:
        state = self
        for pod, row in self._rows(unit):
            state = state.with_(pod) if row == self.row else state._move(with_pod, pod, row)
        return state

    def undo_unit(self, unit: VictimUnit) -> None:
        for pod, row in self._rows(unit):
            if row == self.row:
                self.undo(pod)

    def _rows(self, unit: VictimUnit) -> Iterator[tuple[Pod, int]]:
        """Yields the pods that leave together and matter here, with their rows."""
        if self.run.in_columns:
            name = self.what_if.name(self.row)
            yield from ((pod, self.row) for pod in unit.pods if pod.node_name == name)
            return
        for pod in unit.pods:
            row = self.what_if.row(pod.node_name)
            if row is not None:
                yield pod, row

    def undo(self, pod: Pod) -> None:
        """Takes a pod off the row again; the prepared values of before are still at hand."""
        self.what_if.remove_pod(pod, self.row)

    def refused(self) -> tuple[str, ...]:
        """Returns why the row does not take the pod as it is now."""
        run = self.run
        row = np.array([self.row], np.intp)
        try:
            outcome = filter_with_nominated(
                run.profile, run.pod, self.pre_filtered, self.what_if, row
            )
        except BrokenRowsError as error:
            run.note_errors(error)
            return (str(error),)
        return tuple(reason for _, why in outcome.refusals() for reason in why.reasons)

    def _move(self, move: Callable[..., Mapping[str, Any]], pod: Pod, row: int) -> RowState:
        before = self.pre_filtered.prepared
        if self.run.in_columns:
            # The filters see other pods only by what is counted of them, and nothing is prepared.
            return self
        prepared = move(self.run.profile, before, self.what_if, pod, row)
        if prepared is before:
            return self
        pre_filtered = msgspec.structs.replace(self.pre_filtered, prepared=prepared)
        return replace(self, pre_filtered=pre_filtered)


class CountsDryRun:
    """Many rows at once, for a pod whose filters see others only by what is counted of them."""

    def __init__(self, run: DryRun, lesser: LesserPods) -> None:
        self._run = run
        self._lesser = lesser
        self._what_if = make_what_if(run.profile, run.nodes, lesser.rows)
        self._counting = run.counting

    def candidates(self) -> Candidates:
        run = self._run
        self._what_if.shift(self._lesser.rows, -self._lesser.usage.sum_groups(self._lesser.begins))
        outcome = filter_with_nominated(
            run.profile, run.pod, run.pre_filtered, self._what_if, self._lesser.rows
        )
        for reason, count in outcome.reason_counts():
            if count:
                run.reasons[reason] += count
        fitting = np.flatnonzero(outcome.feasible)
        broken = self._find_breaking()
        gone = self._reprieve(fitting, self._order(broken))
        return self._weigh(fitting, gone, broken)

    def _find_breaking(self) -> Mask:
        """Per pod of the flat arrays whether evicting it breaks a budget."""
        budgets = self._run.budgets
        if not budgets:
            return np.zeros(len(self._lesser.slots), np.bool_)
        by_row = (self._lesser.pods(at) for at in range(len(self._lesser.rows)))
        return np.array([flag for pods in by_row for flag in budgets.breaking(pods)], np.bool_)

    def _order(self, broken: Mask) -> NDArray[np.intp]:
        """The pods of each row in the order in which they are spared: budget breakers first."""
        if not broken.any():
            return np.arange(len(broken))
        owner = np.repeat(np.arange(len(self._lesser.rows)), self._lesser.counts)
        return np.lexsort((np.arange(len(broken)), ~broken, owner))

    def _reprieve(self, fitting: NDArray[np.intp], order: NDArray[np.intp]) -> Mask:
        """Per pod of the flat arrays whether it must go: all at first, then one by one less."""
        gone = np.zeros(len(self._lesser.slots), np.bool_)
        crowd = self._crowd()
        for turn in range(int(self._lesser.counts[fitting].max(initial=0))):
            places = fitting[self._lesser.counts[fitting] > turn]
            pods = order[self._lesser.begins[places] + turn]
            rows = self._lesser.rows[places]
            self._what_if.shift(rows, self._lesser.usage.at(pods))
            spared = self._fits(rows, crowd)
            refused = np.flatnonzero(~spared)
            gone[pods[refused]] = True
            if len(refused):
                self._what_if.shift(rows[refused], -self._lesser.usage.at(pods[refused]))
        return gone

    def _crowd(self) -> Usage | None:
        """Returns what nominated pods take on the rows that have some."""
        weight = self._run.nodes.nominated_weight(self._run.pod)
        if weight is None or not weight.pods()[self._lesser.rows].any():
            return None
        return weight

    def _fits(self, rows: NDArray[np.intp], crowd: Usage | None) -> Mask:
        fits = self._takes_it(rows)
        if crowd is None:
            return fits
        crowded = np.flatnonzero(crowd.pods()[rows])
        if len(crowded):
            there = rows[crowded]
            self._what_if.shift(there, crowd.at(there))
            fits[crowded] &= self._takes_it(there)
            self._what_if.shift(there, -crowd.at(there))
        return fits

    def _takes_it(self, rows: NDArray[np.intp]) -> Mask:
        # The other filters do not read what was moved, and they accept these rows.
        run = self._run
        return filter_rows(
            run.profile, run.pod, run.pre_filtered, self._what_if, rows, self._counting
        ).feasible

    def _weigh(self, fitting: NDArray[np.intp], gone: Mask, broken: Mask) -> Candidates:
        lesser = self._lesser
        counts = self._per_row(gone.astype(np.int64))
        # A row on which everybody could be spared is none on which evicting helps.
        for row in lesser.rows[fitting[counts[fitting] == 0]].tolist():
            self._run.note_all_spared(row)
        fitting = fitting[counts[fitting] > 0]
        lowest = np.iinfo(np.int64).min
        highest = np.maximum.reduceat(np.where(gone, lesser.priorities, lowest), lesser.begins)
        most_important = gone & (lesser.priorities == np.repeat(highest, lesser.counts))
        starts = np.where(most_important, lesser.starts, np.inf)
        broken_counts = self._per_row((gone & broken).astype(np.int64))
        sums = self._per_row(np.where(gone, lesser.priorities + PRIORITY_SHIFT, 0))
        latest = -np.minimum.reduceat(starts, lesser.begins)
        columns = (broken_counts, highest, sums, counts, latest)
        return Candidates.weighed(
            lesser.rows[fitting],
            tuple(column[fitting] for column in columns),
            lambda at: _victims(lesser, fitting.item(at), gone),
        )

    def _per_row(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.add.reduceat(values, self._lesser.begins)


def _victims(lesser: LesserPods, at: int, gone: Mask) -> tuple[Pod, ...]:
    """Returns the pods of the row at a place that must go."""
    begin = lesser.begins.item(at)
    pods = slice(begin, begin + lesser.counts.item(at))
    return lesser.named(lesser.slots[pods][gone[pods]])


def _harmful_first(broken: Sequence[bool]) -> list[int]:
    """Returns the places in the order of being spared: those that break a budget first."""
    return sorted(range(len(broken)), key=lambda at: not broken[at])


def _join(errors: Sequence[str]) -> str:
    """Returns errors as kube-scheduler writes several of them."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
