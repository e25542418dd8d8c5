"""Metrics: counters, gauges and histograms that are cheap to add to.

They are evaluated when they are read. Plugins declare theirs with `counter`, `gauge` and
`histogram`, and return them from `Plugin.metrics`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class Kind(StrEnum):
    """The type of a metric, in Prometheus' words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


Bounds = tuple[float, ...]


def exponential(start: float, factor: float, count: int) -> Bounds:
    """Returns bucket bounds that grow by a factor, multiplied one by one: texts are equal, too."""
    bounds = []
    for _ in range(count):
        bounds.append(start)
        start *= factor
    return tuple(bounds)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `buckets` is for histograms, without the one for everything."""

    name: str
    kind: Kind
    #: With kube-scheduler's promise of stability first, such as [ALPHA]; our own have none.
    help: str
    labels: tuple[str, ...] = ()
    buckets: Bounds = ()

    @property
    def level(self) -> str:
        """The stability that kube-scheduler promises, or that the metric is Moorage's own."""
        return self.help[1:].partition("]")[0] if self.help.startswith("[") else "Moorage"


#: The values of a metric's labels, in the order of their names.
Labels = tuple[str, ...]

# Values are put into buckets this many at a time: one by one would take several times as long,
# and many more would make one addition wait for all of them.
_AT_ONCE = 512

# From this power of ten on, and below that one, Go writes a number with an exponent.
_GO_LARGEST, _GO_SMALLEST = 6, -4


def as_go(value: float) -> str:
    """Formats a number as Go does. Labels are compared as texts: 1 and 1.0 would be two buckets."""
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
        known = self._totals.get(labels)
        if known is None:
            _check_labels(self.metric, labels)
        self._totals[labels] = (known or 0) + amount

    def add_all(self, amounts: Iterable[tuple[Labels, float]]) -> None:
        for labels, amount in amounts:
            self.add(labels, amount)

    def set(self, labels: Labels, value: float) -> None:
        if labels not in self._totals:
            _check_labels(self.metric, labels)
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
            _check_labels(self.metric, labels)
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


Series = Counts | Histogram


def counter(name: str, help_text: str, *labels: str) -> Counts:
    """Declares a counter of a plugin: a number that only grows."""
    return Counts(_declare(name, Kind.COUNTER, help_text, labels))


def gauge(name: str, help_text: str, *labels: str) -> Counts:
    """Declares a gauge of a plugin: a number that goes up and down."""
    return Counts(_declare(name, Kind.GAUGE, help_text, labels))


def histogram(name: str, help_text: str, buckets: Bounds, *labels: str) -> Histogram:
    """Declares a histogram of a plugin, by the upper bounds of its buckets."""
    if not buckets or list(buckets) != sorted(set(buckets)):
        raise ValueError(f"metric {name}: buckets must grow, got {buckets}")
    return Histogram(_declare(name, Kind.HISTOGRAM, help_text, labels, buckets))


_NAME, _LABEL = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*"), re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
#: Labels that are written by others than the plugin.
_RESERVED = ("profile", "le")


def _declare(name: str, kind: Kind, help_text: str, labels: Labels, buckets: Bounds = ()) -> Metric:
    if not _NAME.fullmatch(name):
        raise ValueError(f"metric {name!r}: not a name that Prometheus takes")
    for label in labels:
        if not _LABEL.fullmatch(label) or label.startswith("__") or label in _RESERVED:
            raise ValueError(f"metric {name}: label {label!r} cannot be used")
    return Metric(name, kind, help_text, labels, buckets)


def _check_labels(metric: Metric, labels: Labels) -> None:
    """Raises at once, not when the metrics are read."""
    if len(labels) != len(metric.labels) or not all(isinstance(each, str) for each in labels):
        raise ValueError(f"metric {metric.name}: expected a text for {metric.labels}, got {labels}")
