"""NodeUnschedulable: a cordoned node takes only pods that tolerate being unschedulable."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, RowFacts, Rows, Scope, View
from moorage.framework.advice import Advice, Advise, name_nodes
from moorage.framework.edits import Uncordon
from moorage.framework.plugin import Filter, Rescore, Sign
from moorage.framework.status import Code, Reason
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Wakeup
from moorage.objects.node import Node
from moorage.objects.placement_rules import CORDONED, is_tolerated
from moorage.objects.pod import Pod
from moorage.plugins.taint_toleration import wake_by_taints

_UNSCHEDULABLE = Reason("node(s) were unschedulable", Code.UNRESOLVABLE)


class NodeUnschedulable(Filter[Pod], Sign, Advise[Pod]):
    """Keeps pods off cordoned nodes."""

    name = "NodeUnschedulable"
    reads = Change.UNSCHEDULABLE
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return _tolerates(pod)

    def filter(self, prepared: Pod, nodes: View, rows: Rows) -> Verdict:
        cordoned = nodes.unschedulable[rows]
        if not cordoned.any() or _tolerates(prepared):
            return Verdict.accepting(len(cordoned))
        return Verdict.rejecting(cordoned, _UNSCHEDULABLE)

    def recheck(self, prepared: Pod, nodes: View, row: RowFacts) -> Rescore:
        cordoned = nodes.node(row.number).unschedulable
        return Rescore.INFEASIBLE if cordoned and not _tolerates(prepared) else Rescore.UPDATED

    def advise(
        self, pod: Pod, prepared: Pod | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        there = rows[nodes.unschedulable[rows]]
        if len(there):
            verb = "is" if len(there) == 1 else "are"
            edits = (Uncordon(tuple(map(nodes.name, there.tolist()))),)
            yield Advice(f"{name_nodes(there, nodes)} {verb} cordoned", edits, kind="cordon")

    def wakeups(self) -> tuple[Wakeup, ...]:
        return wake_by_taints(self._after_node_change, self._after_pod_change)

    def _after_node_change(self, pod: Pod, old: Node | None, new: Node) -> bool:
        return (old is None or old.unschedulable) and not new.unschedulable

    def _after_pod_change(self, pod: Pod, old: Pod | None, new: Pod) -> bool:
        return new.uid == pod.uid and _tolerates(new)


def _tolerates(pod: Pod) -> bool:
    return is_tolerated(CORDONED, pod.spec.tolerations or ())
