"""CoexistPolicy: an exclusive pod has its node to itself, but for daemonset and static pods."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.cluster import Change, Counts, Mask, RowFacts, Rows, Scope, View
from moorage.framework.advice import MOST_BLOCKERS, Advice, Advise, find_pods, name_nodes
from moorage.framework.coexist_ledgers import ALL, EXCLUSIVE_PODS, ORDINARY_PODS
from moorage.framework.edits import Edit, EvictPods
from moorage.framework.kubelet_admission import AdmitPods
from moorage.framework.plugin import (
    INFEASIBLE,
    MAX_SCORE,
    UPDATED,
    Filter,
    PreFilter,
    PreScore,
    Reduction,
    Rescore,
    Score,
    Scores,
    Sign,
)
from moorage.framework.sections import Cell, ShowFigures, ShowSection
from moorage.framework.series import Series
from moorage.framework.stamps import StampPods
from moorage.framework.status import Reason, Rejected, unresolvable
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Topics, Wakeup, if_changed, on
from moorage.objects import coexist
from moorage.objects.coexist import (
    ANY,
    EXCLUSIVE_THERE,
    OTHERS_THERE,
    as_counted,
    conflict,
    group_of,
    is_exclusive,
    is_trusted,
    stamp_of,
    unknown_policy,
)
from moorage.objects.daemons import is_ordinary
from moorage.objects.meta import Wire
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.pod_refusal import PodRefusal
from moorage.objects.resources import CPU, MEMORY

from .exclusive_holders import HOLDERS_SECTION, describe_holders, measure_holders

_EXCLUSIVE_THERE = Reason(f"node(s) {EXCLUSIVE_THERE}")
_OTHERS_THERE = Reason(f"node(s) {OTHERS_THERE}")

# Nobody evicts more pods than that to place one, and each costs a look at its node.
_MOST_EVICTED = 50

# How much memory is as large as a thousandth of a core: the 4 GiB per core of a machine that is
# made for no special purpose.
_BYTES_PER_MILLI = 4 * 2**30 // 1000

# A node of one core and 4 GiB, or smaller, scores best; each doubling costs so many points.
_SMALLEST_MILLI = 2 * 1000
_POINTS_PER_DOUBLING = 8

# Keeps sums of absurd capacities within 64 bits.
_LARGEST_MILLI = 2**40

#: From which size on each further point is lost. Whole numbers, so that rows scored one by one and
#: rows scored together cannot differ by rounding.
_STEPS = [
    ceil(_SMALLEST_MILLI * 2 ** (step / _POINTS_PER_DOUBLING)) for step in range(1, MAX_SCORE + 1)
]
_STEPS_COLUMN: NDArray[np.int64] = np.array(_STEPS, np.int64)


class CoexistPolicyArgs(Wire, frozen=True):
    """Whether exclusive pods prefer the smallest of the nodes that they fit on."""

    prefer_smallest_node: bool = False


class SetCoexistPolicy(Edit, frozen=True):
    """Changes which pods the pod tolerates on its node."""

    policy: str

    @property
    def text(self) -> str:
        return f"its coexist policy were {self.policy}"

    def apply(self, pod: Pod) -> Pod:
        return replace(pod, spec=replace(pod.spec, coexist_policy=self.policy))


@dataclass(frozen=True, slots=True)
class CoexistStanding:
    """Whether a pod tolerates others, and whether they must tolerate it."""

    is_exclusive: bool
    is_ordinary: bool
    #: Its members tolerate each other.
    group: str | None = None

    @classmethod
    def of(cls, pod: Pod) -> CoexistStanding:
        return cls(is_exclusive(pod), is_ordinary(pod), group_of(pod))


class CoexistPolicy(
    PreFilter[CoexistStanding],
    Filter[CoexistStanding],
    PreScore[Pod],
    Score[Pod],
    Sign,
    Advise[CoexistStanding],
    StampPods,
    AdmitPods,
    ShowSection,
    ShowFigures,
):
    """Keeps ordinary pods off nodes with an exclusive pod, and exclusive ones off nodes in use."""

    name = "CoexistPolicy"
    Args = CoexistPolicyArgs
    ledgers = (EXCLUSIVE_PODS, ORDINARY_PODS)
    reads = EXCLUSIVE_PODS.change | ORDINARY_PODS.change | Change.ALLOCATABLE | Change.PODS
    scope = Scope.ROW
    reduces = Reduction.NOTHING
    section = HOLDERS_SECTION

    def __init__(self, args: CoexistPolicyArgs | None = None) -> None:
        self._prefers_smallest = (args or CoexistPolicyArgs()).prefer_smallest_node

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return is_exclusive(pod), is_ordinary(pod), unknown_policy(pod), group_of(pod)

    def watch(self, pod: Pod, nodes: View) -> Change:
        kinds = EXCLUSIVE_PODS.change if is_ordinary(pod) else Change.NONE
        if is_exclusive(pod):
            kinds |= ORDINARY_PODS.change
            if self._prefers_smallest:
                kinds |= Change.ALLOCATABLE
        # Members of a group tolerate each other: counts do not say who is there.
        return kinds | Change.PODS if kinds and group_of(pod) else kinds

    # Filtering

    def pre_filter(self, pod: Pod, nodes: View) -> CoexistStanding | Rejected | None:
        wrong = unknown_policy(pod)
        if wrong is not None:
            return unresolvable(f"pod {wrong}")
        standing = CoexistStanding.of(pod)
        return standing if standing.is_exclusive or standing.is_ordinary else None

    def filter(self, prepared: CoexistStanding, nodes: View, rows: Rows) -> Verdict:
        repelled = nodes.nothing(rows)
        if prepared.is_ordinary:
            repelled = _find_others(nodes.ledger(EXCLUSIVE_PODS), prepared.group)[rows]
        if not prepared.is_exclusive:
            return Verdict.rejecting(repelled, _EXCLUSIVE_THERE)
        in_use = _find_others(nodes.ledger(ORDINARY_PODS), prepared.group)[rows] & ~repelled
        return Verdict((_EXCLUSIVE_THERE, _OTHERS_THERE), np.stack((repelled, in_use)))

    def recheck(self, prepared: CoexistStanding, nodes: View, row: RowFacts) -> Rescore:
        against = (
            (prepared.is_ordinary, EXCLUSIVE_PODS),
            (prepared.is_exclusive, ORDINARY_PODS),
        )
        for minds, ledger in against:
            if minds:
                counts = nodes.ledger(ledger)
                members = 0 if prepared.group is None else counts.of(prepared.group)[row.number]
                if counts.of(ALL)[row.number] > members:
                    return INFEASIBLE
        return UPDATED

    # Scoring

    def advise(
        self, pod: Pod, prepared: CoexistStanding | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        """Advises about exclusive pods: those on the node, or the pod itself."""
        wrong = unknown_policy(pod)
        if wrong is not None:
            yield Advice(f"the pod {wrong}", (SetCoexistPolicy(ANY),), kind="coexist")
            return

        def clashes(other: Pod) -> bool:
            return other.uid != pod.uid and bool(conflict(pod, other))

        repelled = rows[nodes.ledger(EXCLUSIVE_PODS).column(ALL)[rows] > 0]
        if len(repelled):
            problem = f"an exclusive pod runs on {name_nodes(repelled, nodes)}"
            there = find_pods(repelled, nodes, clashes, _MOST_EVICTED)
            edits = (EvictPods(there),) if there else ()
            yield Advice(problem, edits, there[:MOST_BLOCKERS], kind="coexist")
        if is_exclusive(pod):
            problem = f"the pod is exclusive and others run on {name_nodes(rows, nodes)}"
            blockers = find_pods(rows, nodes, clashes)
            yield Advice(problem, (SetCoexistPolicy(ANY),), blockers, kind="coexist")

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> Pod | None:
        return pod if self._prefers_smallest and is_exclusive(pod) else None

    def score(self, prepared: Pod, nodes: View, rows: Rows) -> Scores:
        cpu_milli = nodes.allocatable[nodes.resources[CPU]][rows]
        memory_milli = nodes.allocatable[nodes.resources[MEMORY]][rows] // _BYTES_PER_MILLI
        sizes = np.minimum(cpu_milli, _LARGEST_MILLI) + np.minimum(memory_milli, _LARGEST_MILLI)
        lost: Scores = np.searchsorted(_STEPS_COLUMN, sizes, side="right").astype(np.int64)
        return MAX_SCORE - lost

    def rescore(self, prepared: Pod, nodes: View, row: RowFacts, scores: Scores) -> Rescore:
        cpu_milli = row.allocatable[nodes.resources[CPU]]
        memory_milli = row.allocatable[nodes.resources[MEMORY]] // _BYTES_PER_MILLI
        size = min(cpu_milli, _LARGEST_MILLI) + min(memory_milli, _LARGEST_MILLI)
        scores[row.number] = MAX_SCORE - bisect_right(_STEPS, size)
        return UPDATED

    # Pods that have a node

    def stamp(self, pod: Pod) -> Mapping[str, str]:
        return stamp_of(pod)

    def counts_as(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Pod:
        return as_counted(pod, trusted=is_trusted(namespace_labels))

    @classmethod
    def admit(cls, pod: Pod, present: Iterable[Pod]) -> PodRefusal | None:
        return coexist.admit(pod, present, enabled=True)

    @classmethod
    def in_the_way(cls, pod: Pod, present: Iterable[Pod]) -> Iterable[Pod]:
        return [each for each in present if conflict(pod, each)] if is_exclusive(pod) else ()

    def section_rows(self, nodes: View) -> Iterator[tuple[Cell, ...]]:
        return describe_holders(nodes)

    def figures(self, nodes: View, waiting: Iterable[Pod]) -> Iterator[Series | None]:
        return measure_holders(nodes, waiting)

    # Waking

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(
                Resource.POD,
                Action.DELETE,
                self._after_pod_is_gone,
                reads=_standing_of,
                topics=Topics(_sorts_let_in, _sorts),
            ),
            # The policy can be an annotation, which has no event of its own.
            on(
                Resource.POD,
                Action.UPDATE,
                self._after_pod_change,
                reads=_standing_of,
                topics=if_changed(_standing_of),
            ),
            on(Resource.NODE, Action.ADD, self._after_node_comes, reads=_standing_of),
        )

    def _after_pod_is_gone(self, pod: Pod, old: Pod, new: None) -> bool:
        return old.has_place and _is_in_the_way(old, pod)

    def _after_pod_change(self, pod: Pod, old: Pod, new: Pod) -> bool:
        if new.uid == pod.uid:
            return _standing_of(old) != _standing_of(new)
        return _is_in_the_way(old, pod) and not _is_in_the_way(new, pod)

    def _after_node_comes(self, pod: Pod, old: None, new: Node) -> bool:
        return unknown_policy(pod) is None


def _find_others(counts: Counts[str], group: str | None) -> Mask:
    """Returns the rows with pods that are counted, without those of a group."""
    if group is None or not counts.of(group):
        return counts.column(ALL) > 0
    return counts.column(ALL) > counts.column(group)


def _is_in_the_way(other: Pod, pod: Pod) -> bool:
    """Whether a pod waits for another to leave. A pod with a wrong policy waits for none."""
    return unknown_policy(pod) is None and conflict(pod, other) is not None


_EXCLUSIVE, _ORDINARY = "exclusive", "ordinary"


def _sorts(pod: Pod) -> list[str]:
    """Returns the sorts of pod that it is; it waits for pods of the other sort to leave."""
    is_sort = (_EXCLUSIVE, is_exclusive(pod)), (_ORDINARY, is_ordinary(pod))
    return [sort for sort, holds in is_sort if holds]


def _sorts_let_in(old: Pod, new: None) -> list[str]:
    """Returns the sorts of pod that a deleted pod kept off its node."""
    was_in_the_way = (_EXCLUSIVE, is_ordinary(old)), (_ORDINARY, is_exclusive(old))
    return [sort for sort, holds in was_in_the_way if holds]


def _standing_of(pod: Pod) -> tuple[CoexistStanding, str | None]:
    return CoexistStanding.of(pod), unknown_policy(pod)
