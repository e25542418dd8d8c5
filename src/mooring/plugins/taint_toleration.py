"""TaintToleration: taints repel pods that do not tolerate them, outright or as a preference."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Change, Nodes, RowFacts, Rows, Scope
from mooring.framework.events import Action, Resource, Wakeup, on
from mooring.framework.plugin import (
    Filter,
    PreScore,
    Reduction,
    Rescore,
    Score,
    Scores,
    Sign,
    normalized,
    rescored,
)
from mooring.framework.status import Code, Reason
from mooring.framework.verdict import Verdict
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.taint import Taint, TaintEffect, Toleration, tolerated

_HARD: tuple[TaintEffect, ...] = ("NoSchedule", "NoExecute")
_SOFT: tuple[TaintEffect, ...] = ("PreferNoSchedule",)

_UNTOLERATED = Reason("node(s) had untolerated taint(s)", Code.UNRESOLVABLE)


@dataclass(frozen=True, slots=True)
class Untolerated:
    """Counts the taints of some effects that no toleration accepts."""

    tolerations: tuple[Toleration, ...]
    effects: tuple[TaintEffect, ...]
    compares: bool

    def __call__(self, taints: tuple[Taint, ...]) -> int:
        return sum(
            taint.effect in self.effects
            and not tolerated(taint, self.tolerations, compares=self.compares)
            for taint in taints
        )


class TaintToleration(Filter[Pod], PreScore[Untolerated], Score[Untolerated], Sign):
    """Rejects nodes with taints that the pod does not tolerate, and avoids the softer ones."""

    name = "TaintToleration"
    reads = Change.TAINTS
    scope = Scope.ROW
    signs_any_label = False
    reduces = Reduction.LARGEST

    def __init__(self, *, compares: bool = False) -> None:
        self._compares = compares

    @classmethod
    def create(cls, args: Any, gates: Mapping[str, bool]) -> Self:
        return cls(compares=gates["TaintTolerationComparisonOperators"])

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return frozenset(pod.spec.tolerations or ())

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        counts = nodes.taints.judged(self._untolerated(prepared, _HARD))
        if not counts.any():
            return Verdict.accepting(nodes.count(rows))
        return Verdict.rejecting(counts.take(nodes.taint_sets[rows]) > 0, _UNTOLERATED)

    def recheck(self, prepared: Pod, nodes: Nodes, row: RowFacts) -> Rescore:
        taints = nodes.node(row.number).taints
        if taints and self._untolerated(prepared, _HARD)(taints):
            return Rescore.INFEASIBLE
        return Rescore.UPDATED

    def repelling(self, pod: Pod, taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
        """Which of a node's taints keep the pod away."""
        untolerated = self._untolerated(pod, _HARD)
        return tuple(taint for taint in taints if untolerated((taint,)))

    def pre_score(self, pod: Pod, nodes: Nodes, rows: NDArray[np.intp]) -> Untolerated:
        return self._untolerated(pod, _SOFT)

    def score(self, prepared: Untolerated, nodes: Nodes, rows: Rows) -> Scores:
        return nodes.taints.judged(prepared).take(nodes.taint_sets[rows])

    def rescore(
        self, prepared: Untolerated, nodes: Nodes, row: RowFacts, scores: Scores
    ) -> Rescore:
        return rescored(self, prepared, nodes, row, scores)

    def normalize(self, prepared: Untolerated, scores: Scores) -> Scores:
        return normalized(scores, reverse=True)

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_TAINT,
                self._after_node_change,
                alike=True,
            ),
            on(Resource.POD, Action.UPDATE_POD_TOLERATION, self._after_pod_change, alike=True),
        )

    def _after_node_change(self, pod: Pod, old: Node | None, new: Node) -> bool:
        untolerated = self._untolerated(pod, _HARD)
        return not untolerated(new.taints) and (old is None or untolerated(old.taints) > 0)

    def _after_pod_change(self, pod: Pod, old: Pod | None, new: Pod) -> bool:
        return new.uid == pod.uid

    def _untolerated(self, pod: Pod, effects: tuple[TaintEffect, ...]) -> Untolerated:
        return Untolerated(pod.spec.tolerations or (), effects, self._compares)
