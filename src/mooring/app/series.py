"""Counters and histograms that cost little to add to and are worked out when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from .metric_table import Bounds, Metric

#: The values of a metric's labels, in the order of their names.
Labels = tuple[str, ...]

# Values are put into buckets this many at a time: one by one would take several times as long,
# and many more would make one addition wait for all of them.
_AT_ONCE = 512

# From this power of ten on, and below that one, Go writes a number with an exponent.
_GO_LARGEST, _GO_SMALLEST = 6, -4


def as_go(value: float) -> str:
    """A number as Go writes it. Labels are compared as texts: 1 and 1.0 would be two buckets."""
    sign, digits, _ = Decimal(repr(value)).normalize().as_tuple()
    power = Decimal(repr(value)).adjusted()
    if not value or _GO_SMALLEST <= power < _GO_LARGEST:
        return repr(value).removesuffix(".0")
    mantissa = f"{digits[0]}.{''.join(map(str, digits[1:]))}".removesuffix(".")
    return f"{'-' * sign}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02}"


class Counts:
    """A counter or gauge: a number per label values."""

    def __init__(self, metric: Metric, totals: Iterable[tuple[Labels, float]] = ()) -> None:
        self.metric = metric
        self._totals = dict(totals)

    def add(self, labels: Labels = (), amount: float = 1) -> None:
        self._totals[labels] = self._totals.get(labels, 0) + amount

    def set(self, labels: Labels, value: float) -> None:
        self._totals[labels] = value

    def __iter__(self) -> Iterator[tuple[Labels, float]]:
        return iter(sorted(self._totals.items()))


class Buckets:
    """How many values fell into each bucket of a histogram, and their sum."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = np.array(bounds)
        #: The last one is for what is larger than all bounds.
        self.counts: NDArray[np.int64] = np.zeros(len(bounds) + 1, np.int64)
        self.sum = 0.0

    @property
    def count(self) -> int:
        return int(self.counts.sum())

    def add(self, values: Sequence[float] | NDArray[np.float64]) -> None:
        given = np.asarray(values, np.float64)
        # A bucket holds what is less than or equal to its bound.
        at = np.searchsorted(self._bounds, given, side="left")
        self.counts += np.bincount(at, minlength=len(self.counts))
        self.sum += float(given.sum())


class Histogram:
    """A histogram per label values."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._buckets: dict[Labels, Buckets] = {}
        self._fresh: dict[Labels, list[float]] = {}
        if not metric.labels:
            # There is but one, so it is there from the start.
            self._buckets[()] = Buckets(metric.buckets)

    def observe(self, labels: Labels, value: float) -> None:
        fresh = self._fresh.get(labels)
        if fresh is None:
            fresh = self._fresh[labels] = []
        fresh.append(value)
        if len(fresh) >= _AT_ONCE:
            self.observe_all(labels, fresh)
            fresh.clear()

    def observe_all(self, labels: Labels, values: Sequence[float] | NDArray[np.float64]) -> None:
        if not len(values):
            return
        buckets = self._buckets.get(labels)
        if buckets is None:
            buckets = self._buckets[labels] = Buckets(self.metric.buckets)
        buckets.add(values)

    def __iter__(self) -> Iterator[tuple[Labels, Buckets]]:
        for labels, fresh in self._fresh.items():
            if fresh:
                self.observe_all(labels, fresh)
                fresh.clear()
        return iter(sorted(self._buckets.items(), key=lambda each: each[0]))
