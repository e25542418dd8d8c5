"""Scoring nodes by how full they would be: which resources count, and the strategies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, View
from moorage.cluster.columns import NONZERO
from moorage.documents.errors import child, describe, item
from moorage.framework.plugin import MAX_SCORE, Scores
from moorage.objects.device import DeviceClass
from moorage.objects.meta import Wire
from moorage.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY

# Shapes are written with scores of 0 to 10.
_MOST_SHAPE_SCORE = 10
_FULL = 100

# Up to here a hundredfold is a float64 without loss, and so the quotient of two such numbers lies
# on the right side of every integer: float division, much faster, then rounds down exactly.
_EXACT = 2**53 // 100

Column = NDArray[np.int64]
Fractions = NDArray[np.float64]


class ResourceSpec(Wire, frozen=True):
    """A resource and its weight; a weight of 0 means 1."""

    name: str
    weight: int = 1


CPU_AND_MEMORY = (ResourceSpec(name=CPU), ResourceSpec(name=MEMORY))

# These count even for pods that do not ask for them.
_ALWAYS_COUNTED = (CPU, MEMORY, EPHEMERAL_STORAGE)


class AskedResource(NamedTuple):
    """A resource that counts for a pod: its column, how much is asked for, and its weight."""

    at: int
    amount: int
    weight: int
    #: Its place in `nonzero_requested`, or -1.
    nonzero: int


class AskedResources:
    """What a pod requests, and the columns of it, looked up once."""

    __slots__ = ("_counted", "_known", "_requests", "_resources", "classes")

    def __init__(
        self,
        requests: Mapping[str, int],
        resources: Sequence[ResourceSpec],
        classes: Mapping[str, DeviceClass] = MappingProxyType({}),
    ) -> None:
        self._requests = requests
        self._resources = resources
        #: The classes whose devices may serve what the pod requests, by configured resource.
        self.classes = classes
        self._known = -1
        self._counted: tuple[AskedResource, ...] = ()

    def counted(self, nodes: View) -> tuple[AskedResource, ...]:
        """Returns the resources that count for the pod, in the order of the configuration."""
        if self._known != nodes.resources_version:
            self._known = nodes.resources_version
            self._counted = tuple(self._find(nodes))
        return self._counted

    def asked(self) -> Iterator[tuple[str, int, int]]:
        """Yields every configured resource, what the pod requests of it, and its weight."""
        for each in self._resources:
            yield each.name, self._requests.get(each.name, 0), each.weight or 1

    def _find(self, nodes: View) -> Iterator[AskedResource]:
        for resource in self._resources:
            name, amount = resource.name, self._requests.get(resource.name, 0)
            at = nodes.resource(name)
            if at is not None and (amount or name in _ALWAYS_COUNTED):
                yield AskedResource(at, amount, resource.weight or 1, NONZERO.get(name, -1))


class ShapePoint(Wire, frozen=True):
    """A score for a utilization; between two points scores lie on a line."""

    utilization: int = 0
    score: int = 0


class Ratio(Wire, frozen=True):
    """The function from utilization to score."""

    shape: tuple[ShapePoint, ...] = ()

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.shape:
            yield "shape", "at least one point must be specified"
        for at, (one, next_one) in enumerate(pairwise(self.shape), start=1):
            if one.utilization >= next_one.utilization:
                yield child(item("shape", at), "utilization"), "must be in increasing order"
        for at, point in enumerate(self.shape):
            for name, value, most in (
                ("utilization", point.utilization, _FULL),
                ("score", point.score, _MOST_SHAPE_SCORE),
            ):
                if not 0 <= value <= most:
                    where = child(item("shape", at), name)
                    yield where, f"must be between 0 and {most}, got {describe(value)}"


class ScoringStrategy(Wire, frozen=True):
    """Which resources decide the score, and whether full or empty nodes are better."""

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: Ratio | None = None

    def problems(self) -> Iterator[tuple[str, str]]:
        for at, resource in enumerate(self.resources):
            if not 0 <= resource.weight <= 100:
                where = child(item("resources", at), "weight")
                yield where, f"must be between 1 and 100, got {describe(resource.weight)}"
        ratio = self.requested_to_capacity_ratio
        if self.type != "RequestedToCapacityRatio":
            if ratio is not None:
                yield "requestedToCapacityRatio", f'must not be given with type "{self.type}"'
        elif ratio is None:
            yield "requestedToCapacityRatio", f'is required with type "{self.type}"'
        else:
            for where, message in ratio.problems():
                yield child("requestedToCapacityRatio", where), message


@dataclass(frozen=True)
class Load:
    """One resource of some rows: what is requested, and the capacity. Int64, one per row."""

    requested: Column
    capacity: Column
    weight: int = 1

    @cached_property
    def everywhere(self) -> bool:
        """Whether every row has the resource, so that rows need not be looked at one by one."""
        return bool(self.capacity.all())

    @property
    def present(self) -> Mask:
        return self.capacity > 0

    @property
    def utilization(self) -> Scores:
        return self.percent(np.minimum(self.requested, self.capacity))

    def percent(self, part: Column) -> Scores:
        """Returns how many hundredths of the capacity a part of it is, rounded down."""
        if self.capacity.max(initial=0) <= _EXACT:
            return (part * 100.0 / self._whole).astype(np.int64)
        return part * 100 // np.maximum(self.capacity, 1)

    def fraction(self, part: Column) -> Fractions:
        """Returns what fraction of the capacity a part is, at most all of it."""
        return np.minimum(part.astype(np.float64) / self._whole, 1.0)

    @cached_property
    def _whole(self) -> Fractions:
        return np.maximum(self.capacity, 1).astype(np.float64)


#: From the loads of some rows, and how many rows that are, to their scores.
Scorer = Callable[[Sequence[Load], int], Scores]


def least_allocated(loads: Sequence[Load], count: int) -> Scores:
    """Scores by the share that is left."""
    left = (np.maximum(load.capacity - load.requested, 0) for load in loads)
    shares = [load.percent(part) for load, part in zip(loads, left, strict=True)]
    return _average(loads, shares, count)


def most_allocated(loads: Sequence[Load], count: int) -> Scores:
    """Scores by the share that is taken."""
    return _average(loads, [load.utilization for load in loads], count)


def _average(loads: Sequence[Load], shares: Sequence[Scores], count: int) -> Scores:
    """Returns the weighted mean over the resources that a row has, rounded down."""
    totals: Scores = np.zeros(count, np.int64)
    # One number as long as every row has every resource: dividing by it is several times faster.
    weights: int | Column = 0
    for load, share in zip(loads, shares, strict=True):
        totals += share if load.weight == 1 else share * load.weight
        weights = weights + (load.weight if load.everywhere else load.present * load.weight)
    return totals // (max(weights, 1) if isinstance(weights, int) else np.maximum(weights, 1))


def _share_left(capacity: int, requested: int) -> int:
    return (capacity - requested) * 100 // capacity if requested < capacity else 0


def _share_taken(capacity: int, requested: int) -> int:
    return min(requested, capacity) * 100 // capacity


#: The strategies whose score for one resource of one node is a plain division.
SHARES: Mapping[str, Callable[[int, int], int]] = {
    "LeastAllocated": _share_left,
    "MostAllocated": _share_taken,
}


class RequestedToCapacityRatio:
    """Scores by the share that is taken, mapped by a shape, and averaged over resources."""

    def __init__(self, shape: Sequence[ShapePoint]) -> None:
        self._curve = curve(shape)

    def __call__(self, loads: Sequence[Load], count: int) -> Scores:
        totals: Scores = np.zeros(count, np.int64)
        weights: Column = np.zeros(count, np.int64)
        for load in loads:
            scores = self._curve[load.utilization] * load.present
            totals += scores * load.weight
            weights += (scores > 0) * load.weight
        # A half is rounded up; nothing here is negative.
        return np.floor(totals / np.maximum(weights, 1) + 0.5).astype(np.int64)


def curve(shape: Sequence[ShapePoint]) -> Scores:
    """Returns the score of every utilization from 0 to 100."""
    scale = MAX_SCORE // _MOST_SHAPE_SCORE
    points = [(point.utilization, point.score * scale) for point in shape]
    return np.array([_interpolate(points, x) for x in range(_FULL + 1)], np.int64)


def _interpolate(points: Sequence[tuple[int, int]], x: int) -> int:
    if x <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in pairwise(points):
        if x <= x1:
            # Towards zero, on falling lines too.
            return y0 + int((y1 - y0) * (x - x0) / (x1 - x0))
    return points[-1][1]


_SCORERS: Mapping[str, Scorer] = {
    "LeastAllocated": least_allocated,
    "MostAllocated": most_allocated,
}


def scorer(strategy: ScoringStrategy) -> Scorer:
    """Returns the function of a strategy."""
    ratio = strategy.requested_to_capacity_ratio
    if strategy.type == "RequestedToCapacityRatio" and ratio is not None:
        return RequestedToCapacityRatio(ratio.shape)
    return _SCORERS[strategy.type]
