"""NodeResourcesBalancedAllocation: better a node whose resources the pod evens out."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, RowFacts, Rows, Scope, View
from moorage.documents.errors import child, describe, item
from moorage.framework.plugin import (
    MAX_SCORE,
    UPDATED,
    PreScore,
    Reduction,
    Rescore,
    Score,
    Scores,
    Sign,
    rescore_row,
)
from moorage.objects.meta import Wire
from moorage.objects.pod import Pod

from .allocation import (
    CPU_AND_MEMORY,
    AskedResources,
    Fractions,
    Load,
    ResourceSpec,
)

_HALF = MAX_SCORE // 2
# Names what is found out about a row without a pod in mind.
_BALANCE = "balance"
# What a pod scores that neither improves nor worsens the balance.
_UNCHANGED = _HALF + _HALF // 2


class NodeResourcesBalancedAllocationArgs(Wire, frozen=True):
    """The resources that are to be used evenly."""

    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY

    def problems(self) -> Iterator[tuple[str, str]]:
        names = [resource.name for resource in self.resources]
        for at, resource in enumerate(self.resources):
            if resource.name in names[:at]:
                where = child(item("resources", at), "name")
                yield where, f"{describe(resource.name)} is given twice"
            if resource.weight not in (0, 1):
                where = child(item("resources", at), "weight")
                yield where, f"must be 1, got {describe(resource.weight)}"


class NodeResourcesBalancedAllocation(PreScore[AskedResources], Score[AskedResources], Sign):
    """Scores how much closer together the used shares of a node's resources come."""

    name = "NodeResourcesBalancedAllocation"
    Args = NodeResourcesBalancedAllocationArgs
    reads = Change.ALLOCATABLE | Change.REQUESTED
    scope = Scope.ROW
    reduces = Reduction.NOTHING

    def __init__(self, args: NodeResourcesBalancedAllocationArgs | None = None) -> None:
        self._resources = (args and args.resources) or CPU_AND_MEMORY

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return pod.held.requests

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> AskedResources | None:
        requests = dict(pod.held.requests)
        if not any(requests.get(resource.name) for resource in self._resources):
            return None
        return AskedResources(requests, self._resources)

    def score(self, prepared: AskedResources, nodes: View, rows: Rows) -> Scores:
        loads, amounts = [], []
        for each in prepared.counted(nodes):
            loads.append(Load(nodes.requested[each.at][rows], nodes.allocatable[each.at][rows]))
            amounts.append(each.amount)
        if len(loads) < 2:
            return np.full(nodes.count(rows), _UNCHANGED, np.int64)
        gain = _balance(loads, amounts) - _balance(loads, [0] * len(loads))
        return _HALF + (_HALF + gain) // 2

    def rescore(
        self, prepared: AskedResources, nodes: View, row: RowFacts, scores: Scores
    ) -> Rescore:
        counted = prepared.counted(nodes)
        if len(counted) != 2:
            return rescore_row(self, prepared, nodes, row, scores)
        (at, amount, _, _), (other, other_amount, _, _) = counted
        capacity, other_capacity = row.allocatable[at], row.allocatable[other]
        if not (capacity and other_capacity):
            return rescore_row(self, prepared, nodes, row, scores)
        used, other_used = row.requested[at], row.requested[other]
        known = _BALANCE, at, other
        before = row.derived.get(known)
        if before is None:
            before = _balance_of_two(used, capacity, other_used, other_capacity)
            row.derived[known] = before
        after = _balance_of_two(used + amount, capacity, other_used + other_amount, other_capacity)
        gain = after - before
        scores[row.number] = _HALF + (_HALF + gain) // 2
        return UPDATED


def _balance_of_two(used: int, capacity: int, other_used: int, other_capacity: int) -> int:
    """Returns the same as `_balance`, step by step, for one row that has both resources."""
    # As columns divide: both rounded to floats. Python rounds a quotient of integers only once.
    first, second = float(used) / capacity, float(other_used) / other_capacity
    apart = (first if first < 1.0 else 1.0) - (second if second < 1.0 else 1.0)
    return int((1 - abs(apart) / 2) * MAX_SCORE)


def _balance(loads: Sequence[Load], more: Sequence[int]) -> Scores:
    """100 where all resources are used alike; less, the farther apart they are."""
    fractions = [
        load.fraction(load.requested + amount) for load, amount in zip(loads, more, strict=True)
    ]
    deviation = _deviation_of_two if len(fractions) == 2 else _deviation
    return ((1 - deviation(loads, fractions)) * MAX_SCORE).astype(np.int64)


def _deviation_of_two(loads: Sequence[Load], fractions: Sequence[Fractions]) -> Fractions:
    deviation: Fractions = np.abs(fractions[0] - fractions[1]) / 2
    if not all(load.everywhere for load in loads):
        deviation *= loads[0].present & loads[1].present
    return deviation


def _deviation(loads: Sequence[Load], fractions: Sequence[Fractions]) -> Fractions:
    """Returns the standard deviation over the resources that a row has, summed in their order."""
    present = np.stack([load.present for load in loads])
    counts = present.sum(axis=0)
    divisor = np.maximum(counts, 1)
    used = fractions * present
    mean = _total(used) / divisor
    deviation = np.sqrt(_total((used - mean) ** 2 * present) / divisor)
    # Of two it is half the distance, which the root does not always hit exactly.
    distance = used.max(axis=0) - np.where(present, used, 1.0).min(axis=0)
    return np.where(counts == 2, distance / 2, deviation)


def _total(terms: Fractions) -> Fractions:
    """Sums over the first axis, from first to last, because NumPy may choose another order."""
    return np.add.accumulate(terms, axis=0)[-1]
