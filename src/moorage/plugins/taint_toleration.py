"""TaintToleration: taints repel pods that do not tolerate them, outright or as a preference."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, RowFacts, Rows, Scope, View
from moorage.framework.advice import MOST_GROUPS, Advice, Advise, name_nodes
from moorage.framework.edits import TROUBLES, AddToleration, Edit, RecoverNodes, Uncordon
from moorage.framework.plugin import (
    Filter,
    PreScore,
    Reduction,
    Rescore,
    Score,
    Scores,
    Sign,
    normalize_scores,
    rescore_row,
)
from moorage.framework.status import Code, Reason
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import ITSELF, Action, Hint, Resource, Wakeup, on
from moorage.objects.node import Node
from moorage.objects.placement_rules import CORDONED, Taint, TaintEffect, Toleration, is_tolerated
from moorage.objects.pod import Pod

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
            and not is_tolerated(taint, self.tolerations, compares=self.compares)
            for taint in taints
        )


def wake_by_taints(after_node: Hint, after_pod: Hint) -> tuple[Wakeup, ...]:
    """After taints go, cordoning among them, and after the pod tolerates more."""
    node_changes = Action.ADD | Action.UPDATE_NODE_TAINT
    return (
        on(Resource.NODE, node_changes, after_node, alike=True),
        on(Resource.POD, Action.UPDATE_POD_TOLERATION, after_pod, alike=True, topics=ITSELF),
    )


class TaintToleration(Filter[Pod], PreScore[Untolerated], Score[Untolerated], Sign, Advise[Pod]):
    """Rejects nodes with taints that the pod does not tolerate, and avoids the softer ones."""

    name = "TaintToleration"
    reads = Change.TAINTS
    scope = Scope.ROW
    reduces = Reduction.LARGEST

    def __init__(self, *, compares: bool = False) -> None:
        self._compares = compares

    @classmethod
    def create(cls, args: Any, gates: Mapping[str, bool]) -> Self:
        return cls(compares=gates["TaintTolerationComparisonOperators"])

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return frozenset(pod.spec.tolerations or ())

    def filter(self, prepared: Pod, nodes: View, rows: Rows) -> Verdict:
        counts = nodes.taints.judge(self._judge(prepared, _HARD))
        if not counts.any():
            return Verdict.accepting(nodes.count(rows))
        return Verdict.rejecting(counts.take(nodes.taint_sets[rows]) > 0, _UNTOLERATED)

    def recheck(self, prepared: Pod, nodes: View, row: RowFacts) -> Rescore:
        taints = nodes.node(row.number).taints
        if taints and self._judge(prepared, _HARD)(taints):
            return Rescore.INFEASIBLE
        return Rescore.UPDATED

    def repelling(self, pod: Pod, taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
        """Returns which of a node's taints keep the pod away."""
        untolerated = self._judge(pod, _HARD)
        return tuple(taint for taint in taints if untolerated((taint,)))

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> Untolerated:
        return self._judge(pod, _SOFT)

    def score(self, prepared: Untolerated, nodes: View, rows: Rows) -> Scores:
        return nodes.taints.judge(prepared).take(nodes.taint_sets[rows])

    def rescore(self, prepared: Untolerated, nodes: View, row: RowFacts, scores: Scores) -> Rescore:
        return rescore_row(self, prepared, nodes, row, scores)

    def normalize(self, prepared: Untolerated, scores: Scores) -> Scores:
        return normalize_scores(scores, reverse=True)

    def advise(
        self, pod: Pod, prepared: Pod | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        codes = nodes.taint_sets[rows]
        lists = {code: taints for taints, code in nodes.taints.in_use().items()}
        groups: dict[tuple[Taint, ...], list[NDArray[np.intp]]] = {}
        for code in np.unique(codes).tolist():
            repelling = tuple(dict.fromkeys(self.repelling(pod, lists[code])))
            groups.setdefault(repelling, []).append(rows[codes == code])
        merged = {taints: np.concatenate(parts) for taints, parts in groups.items() if taints}
        for taints, there in sorted(merged.items(), key=lambda each: -len(each[1]))[:MOST_GROUPS]:
            untolerated = ", ".join(_write(taint) for taint in taints)
            problem = f"{name_nodes(there, nodes)} had untolerated {untolerated}"
            names = tuple(map(nodes.name, there.tolist()))
            edits = tuple(_accept(taint, names) for taint in taints)
            yield Advice(problem, edits, kind="taint")

    def wakeups(self) -> tuple[Wakeup, ...]:
        return wake_by_taints(self._after_node_change, self._after_pod_change)

    def _after_node_change(self, pod: Pod, old: Node | None, new: Node) -> bool:
        untolerated = self._judge(pod, _HARD)
        return not untolerated(new.taints) and (old is None or untolerated(old.taints) > 0)

    def _after_pod_change(self, pod: Pod, old: Pod | None, new: Pod) -> bool:
        return new.uid == pod.uid

    def _judge(self, pod: Pod, effects: tuple[TaintEffect, ...]) -> Untolerated:
        return Untolerated(pod.spec.tolerations or (), effects, self._compares)


def _accept(taint: Taint, node_names: tuple[str, ...]) -> Edit:
    """Returns what makes a taint of some nodes no obstacle any more."""
    if taint.key == CORDONED.key and taint.effect == CORDONED.effect:
        return Uncordon(node_names)
    if taint.key in TROUBLES:
        return RecoverNodes(taint.key, taint.value, taint.effect, node_names)
    return AddToleration.of(taint)


def _write(taint: Taint) -> str:
    return f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"
