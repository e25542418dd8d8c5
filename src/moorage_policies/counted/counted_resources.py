"""CountedResources: nodes must have enough left of what a configuration says is counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.plugin import (
    Action,
    Advice,
    Advise,
    Change,
    Code,
    DecodeError,
    Edit,
    Filter,
    HandleRegistry,
    Node,
    Pod,
    PreFilter,
    PreScore,
    Reason,
    Reduction,
    Rejected,
    Rescore,
    Resource,
    RowFacts,
    Rows,
    Scope,
    Score,
    Scores,
    SetAnnotation,
    Verdict,
    View,
    Wakeup,
    name_nodes,
    near_misses,
    on,
    unresolvable,
)
from moorage_policies.amounts import share, shares

from .counted_amount import CAPACITY, OLD, USED, PodUse
from .counted_args import CountedResource, CountedResourcesArgs
from .counting_plugin import CountingPlugin


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pod requests of one resource, and how to judge it."""

    resource_type: str
    amount: int
    packs: bool

    @property
    def reasons(self) -> tuple[Reason, ...]:
        name = self.resource_type
        return (
            Reason(f"node(s) of which {name} is not known", Code.UNRESOLVABLE),
            Reason(f"node(s) of which {name} was reported too long ago", Code.UNRESOLVABLE),
            Reason(f"Insufficient {name}"),
            Reason(f"Insufficient {name}", Code.UNRESOLVABLE),
        )


Demands = tuple[Demand, ...]


class CountedResources(
    PreFilter[Demands],
    Filter[Demands],
    PreScore[Demands],
    Score[Demands],
    CountingPlugin,
    Advise[Demands],
):
    """Compares what pods ask for with what nodes have left, resource by resource."""

    name = "CountedResources"
    Args = CountedResourcesArgs
    reads = Change.EXTENDED
    scope = Scope.ROW
    reduces = Reduction.NOTHING

    def __init__(
        self, args: CountedResourcesArgs | None = None, handles: HandleRegistry | None = None
    ) -> None:
        self._resources = (args or CountedResourcesArgs()).resources
        super().__init__(self._resources, handles)

    def _demands(self, pod: Pod) -> Iterator[tuple[CountedResource, Demand]]:
        """Yields what a pod asks for; raises DecodeError naming an annotation."""
        for each in self._resources:
            amount = self._handles[each.name].use.amount(pod)
            if amount:
                yield each, Demand(each.name, amount, each.scoring == "MostAllocated")

    # Filtering

    def pre_filter(self, pod: Pod, nodes: View) -> Demands | Rejected | None:
        try:
            found = tuple(demand for each, demand in self._demands(pod) if each.filter)
        except DecodeError as error:
            return unresolvable(str(error))
        return found or None

    def filter(self, prepared: Demands, nodes: View, rows: Rows) -> Verdict:
        reasons = [reason for each in prepared for reason in each.reasons]
        failed = np.zeros((len(reasons), nodes.count(rows)), np.bool_)
        for at, each in enumerate(prepared):
            self._judge(each, nodes, rows, failed[4 * at : 4 * at + 4])
        return Verdict(tuple(reasons), failed)

    def _judge(self, demand: Demand, nodes: View, rows: Rows, failed: NDArray[np.bool_]) -> None:
        columns = nodes.extended.columns(demand.resource_type)
        if columns is None:
            failed[0] = True
            return
        present, old = columns.present[rows], columns[OLD][rows] > 0
        can = columns[CAPACITY][rows]
        known = present & ~old
        np.logical_not(present, out=failed[0])
        failed[1] = old
        failed[2] = known & (can - columns[USED][rows] < demand.amount)
        failed[3] = known & (can < demand.amount)

    def recheck(self, prepared: Demands, nodes: View, row: RowFacts) -> Rescore:
        for each in prepared:
            figures = _figures(each, nodes, row)
            if figures is None:
                return Rescore.INFEASIBLE
            can, used, old = figures
            if old or can - used < each.amount:
                return Rescore.INFEASIBLE
        return Rescore.UPDATED

    def advise(
        self, pod: Pod, prepared: Demands | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        """Advises to request less, or nothing."""
        for each in self._resources:
            use = self._handles[each.name].use
            if each.filter and use.is_said(pod):
                try:
                    yield from advise_on_amount(pod, use, each.name, nodes, rows)
                except DecodeError:
                    yield advise_on_annotation(pod, use)

    # Scoring

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> Demands | None:
        try:
            found = tuple(demand for each, demand in self._demands(pod) if each.scoring != "None")
        except DecodeError:
            return None
        return found or None

    def score(self, prepared: Demands, nodes: View, rows: Rows) -> Scores:
        totals: Scores = np.zeros(nodes.count(rows), np.int64)
        for each in prepared:
            columns = nodes.extended.columns(each.resource_type)
            if columns is not None:
                used = columns[USED][rows] + each.amount
                totals += shares(columns[CAPACITY][rows], used, packs=each.packs)
        return totals // len(prepared)

    def rescore(self, prepared: Demands, nodes: View, row: RowFacts, scores: Scores) -> Rescore:
        total = 0
        for each in prepared:
            figures = _figures(each, nodes, row)
            if figures is not None:
                total += share(figures[0], figures[1] + each.amount, packs=each.packs)
        scores[row.number] = total // len(prepared)
        return Rescore.UPDATED

    # Waking

    def wakeups(self) -> tuple[Wakeup, ...]:
        node_changes = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ANNOTATION
        nodes = on(Resource.NODE, node_changes, self._after_node, alike=True)
        return (nodes, *super().wakeups())

    def _after_node(self, pod: Pod, old: Node | None, new: Node) -> bool:
        if old is None:
            return True
        for handle in self._handles.values():
            capacity = handle.settings.capacity
            label, annotation = capacity.node_label, capacity.node_annotation
            if label and old.labels.get(label) != new.labels.get(label):
                return True
            if annotation and old.annotations.get(annotation) != new.annotations.get(annotation):
                return True
        return False


def _figures(demand: Demand, nodes: View, row: RowFacts) -> list[int] | None:
    """Capacity, use and age of one row; None where nothing is told."""
    columns = nodes.extended.columns(demand.resource_type)
    return None if columns is None else columns.at(row.number)


def advise_on_amount(
    pod: Pod, use: PodUse, name: str, nodes: View, rows: NDArray[np.intp]
) -> Iterator[Advice]:
    """Yields advice about a counted resource that is short on some nodes, or not known there."""
    columns, asked = nodes.extended.columns(name), use.amount(pod)
    if columns is None or not asked:
        return
    known = columns.present[rows] & (columns[OLD][rows] == 0)
    if not known.all():
        yield Advice(f"{name_nodes(rows[~known], nodes)} tell no {name}", _ask(use, None))
    rows = rows[known]
    if not len(rows):
        return
    short = np.maximum(asked - (columns[CAPACITY][rows] - columns[USED][rows]), 0)
    for miss in near_misses(short[np.newaxis], rows, np.array([asked])):
        (by,) = miss.short.tolist()
        if by:
            most = "" if miss.is_exact else "up to "
            problem = f"{name_nodes(miss.rows, nodes)} lacked {most}{by} {name}"
            yield Advice(problem, _ask(use, max(asked - by, 0)))


def advise_on_annotation(pod: Pod, use: PodUse) -> Advice:
    """Yields advice about an annotation that cannot be read."""
    return Advice(f"annotation {use.annotation} is no quantity", _ask(use, None))


def _ask(use: PodUse, amount: int | None) -> tuple[Edit, ...]:
    """Makes the edit by which the pod requests that much, or nothing, by its annotation."""
    if not use.annotation:
        return ()
    return (SetAnnotation(use.annotation, str(amount) if amount else None),)
