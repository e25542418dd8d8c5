"""ExclusiveNodeLimits: limits the nodes that a namespace holds by exclusive pods."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from moorage.cluster import Change, Rows, Scope, View
from moorage.framework.coexist_ledgers import HOLDERS
from moorage.framework.plugin import Filter, PreFilter, Sign
from moorage.framework.sections import Cell, ShowSection
from moorage.framework.status import Code, Reason, Rejected, unresolvable
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Wakeup, on
from moorage.objects.coexist import LIMIT_LABEL, is_exclusive
from moorage.objects.meta import Wire
from moorage.objects.pod import Pod
from moorage.objects.workload import Namespace

from .exclusive_holders import HOLDERS_SECTION, describe_holders


class ExclusiveNodeLimitsArgs(Wire, frozen=True):
    """How many nodes exclusive pods of a namespace may hold, unless its label says otherwise."""

    #: None is as many as there are.
    max_nodes_per_namespace: int | None = None

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.max_nodes_per_namespace is not None and self.max_nodes_per_namespace < 0:
            yield "maxNodesPerNamespace", "must not be negative"


@dataclass(frozen=True, slots=True)
class HeldNodes:
    """How many nodes a namespace may hold, and on which rows how many of its pods hold some."""

    namespace: str
    limit: int
    rows: Mapping[int, int]

    def move(self, row: int, amount: int) -> HeldNodes:
        """Returns the same with an exclusive pod of the namespace more or fewer on a row."""
        rows = {**self.rows, row: self.rows.get(row, 0) + amount}
        return replace(self, rows={row: count for row, count in rows.items() if count > 0})

    @property
    def refusal(self) -> Reason:
        # Evicting the namespace's own pods helps, unless none are allowed at all.
        code = Code.UNSCHEDULABLE if self.limit else Code.UNRESOLVABLE
        held = f"namespace {self.namespace} holds {len(self.rows)} of {self.limit} exclusive nodes"
        return Reason(f"node(s) beyond the limit: {held}", code)


class ExclusiveNodeLimits(PreFilter[HeldNodes], Filter[HeldNodes], Sign, ShowSection):
    """Keeps exclusive pods of a namespace that holds enough nodes to those that it holds."""

    name = "ExclusiveNodeLimits"
    Args = ExclusiveNodeLimitsArgs
    ledgers = (HOLDERS,)
    # Who comes and goes matters by the namespace, not by a count.
    reads = HOLDERS.change | Change.NAMESPACES | Change.PODS
    # A node that is taken here is one less everywhere.
    scope = Scope.CLUSTER
    section = HOLDERS_SECTION

    def __init__(self, args: ExclusiveNodeLimitsArgs | None = None) -> None:
        #: What a namespace without a label may hold; None is as many as there are.
        self._most = (args or ExclusiveNodeLimitsArgs()).max_nodes_per_namespace

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return pod.namespace if is_exclusive(pod) else None

    def watch(self, pod: Pod, nodes: View) -> Change:
        return HOLDERS.change | Change.NAMESPACES if is_exclusive(pod) else Change.NONE

    def pre_filter(self, pod: Pod, nodes: View) -> HeldNodes | Rejected | None:
        if not is_exclusive(pod):
            return None
        limit: int | None = self._most
        said = nodes.workloads.namespace_labels(pod.namespace).get(LIMIT_LABEL)
        if said is not None:
            if not (said.isascii() and said.isdigit()):
                wrong = f"label {LIMIT_LABEL} must be a number, got {said!r}"
                return unresolvable(f"namespace {pod.namespace}: {wrong}")
            limit = int(said)
        if limit is None:
            return None
        return HeldNodes(pod.namespace, limit, nodes.ledger(HOLDERS).of(pod.namespace))

    def add_pod(self, prepared: HeldNodes, nodes: View, pod: Pod, row: int) -> HeldNodes:
        return prepared.move(row, 1) if _holds(pod, prepared) else prepared

    def remove_pod(self, prepared: HeldNodes, nodes: View, pod: Pod, row: int) -> HeldNodes:
        return prepared.move(row, -1) if _holds(pod, prepared) else prepared

    def filter(self, prepared: HeldNodes, nodes: View, rows: Rows) -> Verdict:
        if len(prepared.rows) < prepared.limit:
            return Verdict((), np.zeros((0, nodes.count(rows)), np.bool_))
        beyond = ~nodes.nothing(rows)
        held = np.fromiter(prepared.rows, np.intp, len(prepared.rows))
        beyond &= ~np.isin(nodes.numbers(rows), held)
        return Verdict.rejecting(beyond, prepared.refusal)

    def section_rows(self, nodes: View) -> Iterator[tuple[Cell, ...]]:
        return describe_holders(nodes, self._most)

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(Resource.POD, Action.DELETE, _after_pod_is_gone, alike=True),
            on(Resource.POD, Action.UPDATE, _after_pod_change, alike=True),
            on("Namespace", Action.ALL, _after_namespace_change, alike=True),
        )


def _holds(pod: Pod, prepared: HeldNodes) -> bool:
    return pod.namespace == prepared.namespace and is_exclusive(pod)


def _after_pod_is_gone(pod: Pod, old: Pod, new: None) -> bool:
    return old.has_place and old.namespace == pod.namespace and is_exclusive(old)


def _after_pod_change(pod: Pod, old: Pod, new: Pod) -> bool:
    if new.namespace != pod.namespace:
        return False
    return is_exclusive(old) and not is_exclusive(new)


def _after_namespace_change(pod: Pod, old: Namespace | None, new: Namespace | None) -> bool:
    named = new or old
    return named is not None and named.name == pod.namespace
