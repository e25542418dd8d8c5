"""DefaultPreemption: makes room for a pod by evicting less important ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Self
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, View
from moorage.config import FeatureGates
from moorage.framework.advice import AdviseEviction, EvictionAdvice
from moorage.framework.attempt import Failed
from moorage.framework.plugin import (
    NoRemedy,
    Preempt,
    ProposedEviction,
    Remedy,
    Sign,
)
from moorage.framework.profile import Profile
from moorage.framework.status import BrokenRowsError, Code, PluginError
from moorage.framework.victim_units import makes_way
from moorage.framework.wakeups import Action, Resource, Wakeup, on
from moorage.objects.meta import Wire
from moorage.objects.pod import Pod

from .known_victims import KnownVictims
from .preemption_advice import advise_on_priority
from .preemption_candidates import NO_CANDIDATES, Candidates
from .preemption_dry_run import NO_VICTIMS, NOT_LOOKED_AT, DryRun

_NO_CANDIDATE = "no candidate node for preemption"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_FOUND = "preemption: found a potential placement for pod on node {}, preempting {} victims"


class DefaultPreemptionArgs(Wire, frozen=True):
    """How many nodes are looked at before the best of them is taken."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def problems(self) -> Iterator[tuple[str, str]]:
        percentage, absolute = (
            self.min_candidate_nodes_percentage,
            self.min_candidate_nodes_absolute,
        )
        if not 0 <= percentage <= 100:
            yield "minCandidateNodesPercentage", f"must be between 0 and 100, got {percentage}"
        if absolute < 0:
            yield "minCandidateNodesAbsolute", f"must be 0 or greater, got {absolute}"
        if percentage == absolute == 0:
            both = "minCandidateNodesPercentage and minCandidateNodesAbsolute"
            yield "minCandidateNodesPercentage", f"{both} cannot both be 0"


class DefaultPreemption(Preempt, Sign, AdviseEviction):
    """Finds the node where the least important pods must go, and names them."""

    name = "DefaultPreemption"
    Args = DefaultPreemptionArgs
    #: What filters read besides is theirs to say. Budgets and starting times tell who goes first,
    #: not whether anybody can.
    reads = Change.PODS | Change.NOMINATED

    def __init__(self, args: DefaultPreemptionArgs, *, tells_of_victims: bool = False) -> None:
        self._args = args
        self._tells_of_victims = tells_of_victims
        self._known = KnownVictims()

    @classmethod
    def create(cls, args: Any, gates: FeatureGates) -> Self:
        return cls(args, tells_of_victims=gates.version.tells_of_victims)

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return pod.priority, pod.spec.preemption_policy

    def advise_eviction(
        self, pod: Pod, failed: Failed, nodes: View, profile: Profile
    ) -> EvictionAdvice | None:
        return advise_on_priority(pod, failed, nodes, profile)

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (on(Resource.POD, Action.DELETE, _never, alike=True),)

    def post_filter(
        self, pod: Pod, failed: Failed, nodes: View, profile: Profile
    ) -> Remedy | NoRemedy:
        found = self._look(pod, failed, nodes, profile)
        return found if isinstance(found, NoRemedy) else self._take_best(found, nodes)

    def propose(
        self, pod: Pod, failed: Failed, nodes: View, profile: Profile
    ) -> tuple[ProposedEviction, ...] | NoRemedy:
        found = self._look(pod, failed, nodes, profile)
        if isinstance(found, NoRemedy):
            return found
        return tuple(
            ProposedEviction(nodes.name(row), found.victims(at), int(found.violations[at]))
            for at, row in enumerate(found.rows.tolist())
        )

    def choose(self, proposals: Sequence[ProposedEviction], nodes: View) -> Remedy | NoRemedy:
        known = ((nodes.row(each.node_name), each) for each in proposals)
        left = [(row, each.victims, each.violations) for row, each in known if row is not None]
        if not left:
            return NoRemedy(Code.UNSCHEDULABLE, (f"preemption: {_NO_CANDIDATE}",))
        return self._take_best(Candidates.of(left), nodes)

    def _look(
        self, pod: Pod, failed: Failed, nodes: View, profile: Profile
    ) -> Candidates | NoRemedy:
        why_not = ineligible(pod, failed, nodes)
        if why_not:
            return NoRemedy(Code.UNSCHEDULABLE, (f"preemption: {why_not}",))
        reasons: Counter[str] = Counter()
        try:
            found = self.candidates(pod, failed, nodes, profile, reasons)
        except PluginError as error:
            return NoRemedy(Code.ERROR, (f"preemption: {error}",))
        if len(found):
            return found
        return NoRemedy(
            Code.UNSCHEDULABLE,
            (f"preemption: {_describe(reasons, failed.node_count)}",),
            clears_nomination=True,
            partial=bool(reasons[NOT_LOOKED_AT]),
        )

    def candidates(
        self,
        pod: Pod,
        failed: Failed,
        nodes: View,
        profile: Profile,
        reasons: Counter[str],
    ) -> Candidates:
        """Returns the nodes to choose from; `reasons` is filled for the others."""
        if not nodes.groups.are_placed and not nodes.pod_table().has_below(pod.priority):
            count = _count_helpable(failed, nodes)
            _note(reasons, _NOT_HELPFUL, failed.node_count - count)
            _note(reasons, NO_VICTIMS, count)
            return NO_CANDIDATES
        twice = _list_helpable_twice(failed, nodes)
        rows = twice[: len(twice) // 2]
        count = len(rows)
        _note(reasons, _NOT_HELPFUL, failed.node_count - count)
        if count:
            # From a place that differs from pod to pod.
            begin = crc32(f"{pod.uid}/{failed.attempt}".encode()) % count
            rows = twice[begin : begin + count]
        skipped = dict(reasons)
        run = DryRun(profile, pod, failed.pre_filtered, nodes, reasons)
        wanted = self._count_wanted(count)
        known = self._find_known(run, rows, wanted)
        if known is not None and len(known):
            return known
        # Why evicting does not help is counted by a look at every row.
        reasons.clear()
        reasons.update(skipped)
        return run.candidates(rows, wanted)

    def _find_known(self, run: DryRun, rows: NDArray[np.intp], wanted: int) -> Candidates | None:
        """Returns what is known of a pod like it; None where a filter fails on some rows."""
        try:
            return self._known.candidates(run, rows, wanted)
        except BrokenRowsError:
            return None

    def _take_best(self, found: Candidates, nodes: View) -> Remedy:
        best = found.best()
        name = nodes.name(found.rows.item(best))
        victims = found.victims(best)
        text = _FOUND.format(name, len(victims)) if self._tells_of_victims else ""
        return Remedy(name, victims, found.violations.item(best), text)

    def _count_wanted(self, potential: int) -> int:
        share = potential * self._args.min_candidate_nodes_percentage // 100
        return min(max(share, self._args.min_candidate_nodes_absolute), potential)


def _list_helpable_twice(failed: Failed, nodes: View) -> NDArray[np.intp]:
    """Returns the rows where evicting might help, in visiting order, and then all of them again.

    So a round of them that begins anywhere is a slice.
    """
    if failed.filtered is None:
        return np.zeros(0, np.intp)
    helpable, order = failed.filtered.helpable_rows, nodes.order
    known, rows = failed.digest("helpable", lambda: (order, _repeat_in_order(helpable(), order)))
    return rows if known is order else _repeat_in_order(helpable(), order)


def _repeat_in_order(rows: NDArray[np.intp], order: NDArray[np.intp]) -> NDArray[np.intp]:
    # A mask also leaves out rows that come several times: nominated pods are noted apart.
    is_meant = np.zeros(max(order.max(initial=-1), rows.max(initial=-1)) + 1, np.bool_)
    is_meant[rows] = True
    found = order[is_meant[order]]
    return np.concatenate((found, found))


def _count_helpable(failed: Failed, nodes: View) -> int:
    """Returns how many rows these are."""
    filtered = failed.filtered
    if filtered is None or filtered.amended:
        return len(_list_helpable_twice(failed, nodes)) // 2
    # No row comes twice.
    return failed.digest("helpable count", lambda: len(filtered.helpable_rows()))


def _note(reasons: Counter[str], reason: str, count: int) -> None:
    if count > 0:
        reasons[reason] += count


def ineligible(pod: Pod, failed: Failed, nodes: View) -> str:
    """Returns why no pod may be evicted for a pod; empty if some may."""
    if pod.spec.preemption_policy == "Never":
        return "not eligible due to preemptionPolicy=Never."
    row = nodes.row(nodes.nominations.node_of(pod))
    if row is None or _cannot_be_helped(row, failed):
        return ""
    if any(makes_way(other, pod.priority) for other in nodes.pods(row).values()):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def _cannot_be_helped(row: int, failed: Failed) -> bool:
    """Whether the nominated node was rejected for something that evicting cannot change."""
    return failed.filtered is None or row not in failed.filtered.helpable_rows()


def _describe(reasons: Counter[str], node_count: int) -> str:
    counted = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return f"0/{node_count} nodes are available: {counted}."


def _never(pod: Pod, old: object, new: object) -> bool:
    return False
