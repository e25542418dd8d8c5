"""NodeName: a pod that asks for one node by name gets that one or none."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, RowFacts, Rows, Scope, View
from moorage.config import FeatureGates
from moorage.framework.advice import Advice, Advise
from moorage.framework.edits import DropNodeName
from moorage.framework.plugin import (
    Filter,
    Narrowed,
    PreFilter,
    Rescore,
    Sign,
)
from moorage.framework.status import Code, Reason
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Wakeup, on
from moorage.objects.pod import Pod

_OTHER_NAME = Reason("node(s) didn't match the requested node name", Code.UNRESOLVABLE)


class NodeName(PreFilter[Pod], Filter[Pod], Sign, Advise[Pod]):
    """Compares the node's name with the one that the pod asks for, if it does."""

    name = "NodeName"
    # A row has another name only when it has another node.
    reads = Change.MEMBERSHIP
    scope = Scope.ROW

    def __init__(self, *, narrows: bool = False) -> None:
        self._narrows = narrows

    @classmethod
    def create(cls, args: Any, gates: FeatureGates) -> Self:
        return cls(narrows=gates.version.narrows_to_named_node)

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return pod.node_name

    def pre_filter(self, pod: Pod, nodes: View) -> Pod | Narrowed[Pod] | None:
        if not pod.node_name:
            return None
        return Narrowed(pod, frozenset({pod.node_name})) if self._narrows else pod

    def filter(self, prepared: Pod, nodes: View, rows: Rows) -> Verdict:
        return Verdict.rejecting(~nodes.named(prepared.node_name, rows), _OTHER_NAME)

    def recheck(self, prepared: Pod, nodes: View, row: RowFacts) -> Rescore:
        is_named = prepared.node_name == nodes.name(row.number)
        return Rescore.UPDATED if is_named else Rescore.INFEASIBLE

    def advise(
        self, pod: Pod, prepared: Pod | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        problem = f"the pod asks for node {pod.node_name}"
        yield Advice(problem, (DropNodeName(pod.node_name),), kind="node-name")

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (on(Resource.NODE, Action.ADD),)
