"""What /metrics tells: kube-scheduler's metrics, read from the observations and the engine.

Gauges are computed when somebody asks, on the thread that decides, so nothing is locked and nothing
is counted on the way of a decision. What may be long is done in slices. The text is written on the
thread that serves.
"""

from __future__ import annotations

import asyncio
import platform
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from typing import Protocol

import numpy as np
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

import mooring
from mooring.engine import Engine
from mooring.queue import QueuedPod
from mooring.web.turns import Read, in_slices

from . import metric_table as table
from .observations import Observations
from .series import Buckets, Counts, Histogram, as_go

#: What generate_latest writes.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Pods that are looked at before decisions get their turn again: about two milliseconds.
_SLICE = 2_000


class Watches(Protocol):
    """What is known of the watches of a scheduler."""

    @property
    def absent(self) -> list[str]: ...

    @property
    def left_out(self) -> Mapping[str, int]: ...


class Metrics:
    """All metrics of a process. `registry` is for plugins that bring metrics of their own."""

    def __init__(
        self,
        engine: Engine,
        observations: Observations,
        read: Read = in_slices,
        stood_still: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`stood_still` tells for how many seconds no decision has ended."""
        self._read = read
        self._stood_still = stood_still
        #: As they were read last, for when a decision takes so long that they cannot be read.
        self._latest: list[Metric] = []
        self._engine = engine
        self._observations = observations
        self._leading = Counts(table.LEADER)
        self._requests = Counts(table.REQUESTS)
        self._request_durations = Histogram(table.REQUEST_DURATION)
        self._watches: Watches | None = None
        self.registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self.registry)

    # Hooks for those who act

    def leads(self, name: str, leading: bool) -> None:
        """Takes note of who holds the lease of that name."""
        self._leading.set((name,), int(leading))

    def requested(self, method: str, host: str, code: int | None, seconds: float) -> None:
        """Takes note of a request to the API server; no code means that there was no answer."""
        self._requests.add(("<error>" if code is None else str(code), method, host))
        self._request_durations.observe((method, host), seconds)

    def follow(self, watches: Watches) -> None:
        """Tells from now on what these could not read."""
        self._watches = watches

    # Reading

    async def text(self) -> bytes:
        """Everything, in Prometheus' text format; as of the last time if a decision takes long."""
        with suppress(TimeoutError):
            self._latest = await self._read(self._families())
        parts = []
        for family in (*self._latest, *map(_family, self._of_now())):
            parts.append(generate_latest(_Only(family)))
            # Some histograms have thousands of lines.
            await asyncio.sleep(0)
        return b"".join((*parts, generate_latest(self.registry)))

    def _of_now(self) -> Iterator[Counts]:
        """What is known without asking the thread that decides."""
        yield self._leading
        yield Counts(table.STOOD_STILL, [((), self._stood_still())])

    def _families(self) -> Generator[None, None, list[Metric]]:
        rejections = yield from self._rejections()
        found = []
        for family in chain(self._counts(rejections), self._histograms()):
            found.append(family)
            yield
        return found

    def _histograms(self) -> Iterator[Metric]:
        for histogram in (*self._observations.histograms(), self._request_durations):
            yield _histogram_family(histogram)

    def _counts(self, rejections: Counter[tuple[str, str]]) -> Iterator[Metric]:
        counted = (
            *self._observations.counts(),
            *self._of_batches(),
            *self._of_queue(),
            *self._of_watches(),
            *self._of_process(),
            Counts(table.UNSCHEDULABLE_PODS, rejections.items()),
            self._requests,
        )
        return (_family(counts) for counts in counted)

    def _rejections(self) -> Generator[None, None, Counter[tuple[str, str]]]:
        """How many waiting pods each plugin of each profile rejected."""
        found: Counter[tuple[str, str]] = Counter()
        left = iter(list(self._engine.queue))
        while some := list(islice(left, _SLICE)):
            found.update(_blames(some))
            yield
        return found

    def _of_queue(self) -> Iterator[Counts]:
        engine = self._engine
        queue, cluster = engine.queue, engine.cluster
        yield _by_one(table.PENDING_PODS, queue.sizes())
        yield _by_one(table.INFLIGHT_EVENTS, queue.remembered())
        yield Counts(table.QUEUE_INCOMING_PODS, queue.incoming.items())
        sizes = {
            "nodes": len(cluster.nodes),
            "pods": len(cluster.pods),
            "assumed_pods": cluster.assumed_count,
        }
        yield _by_one(table.CACHE_SIZE, sizes)
        yield _by_one(table.CAUGHT_ERRORS, engine.caught)
        yield _by_one(table.TOO_COSTLY_PODS, engine.too_costly)

    def _of_batches(self) -> Iterator[Counts]:
        attempts, flushed = Counts(table.BATCH_ATTEMPTS), Counts(table.BATCH_CACHE_FLUSHED)
        for name, classes in self._engine.classes.items():
            told = classes.statistics.metrics(name)
            for counts in (attempts, flushed):
                for labels, count in told[counts.metric.name].items():
                    counts.add(labels, count)
        return iter((attempts, flushed))

    def _of_watches(self) -> Iterator[Counts]:
        watches = self._watches
        left_out = dict(watches.left_out) if watches else {}
        yield _by_one(table.LEFT_OUT, left_out)
        yield _by_one(table.ABSENT_KIND, dict.fromkeys(watches.absent if watches else (), 1))

    def _of_process(self) -> Iterator[Counts]:
        gates = self._engine.configuration.gates
        yield Counts(table.FEATURE_ENABLED, (((name, ""), int(gates[name])) for name in gates))
        build = mooring.__version__, platform.python_version()
        yield Counts(table.BUILD_INFO, [(build, 1)])


class _Only(Collector):
    """Stands for a registry with one metric: so one can be written at a time."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return (self._family,)


def _blames(waiting: Iterable[QueuedPod]) -> Iterator[tuple[str, str]]:
    for queued in waiting:
        for plugin in queued.blamed:
            yield plugin, queued.pod.spec.scheduler_name


def _by_one(metric: table.Metric, values: Mapping[str, int]) -> Counts:
    """A metric with one label."""
    return Counts(metric, (((label,), value) for label, value in values.items()))


def _family(counts: Counts) -> Metric:
    metric = counts.metric
    kind = CounterMetricFamily if metric.kind is table.Kind.COUNTER else GaugeMetricFamily
    family = kind(metric.name, metric.documentation, labels=metric.labels)
    for labels, value in counts:
        family.add_metric(labels, value)
    return family


def _histogram_family(histogram: Histogram) -> Metric:
    metric = histogram.metric
    family = HistogramMetricFamily(metric.name, metric.documentation, labels=metric.labels)
    bounds = [*map(as_go, metric.buckets), "+Inf"]
    for labels, buckets in histogram:
        family.add_metric(labels, _cumulated(bounds, buckets), buckets.sum)
    return family


def _cumulated(bounds: list[str], buckets: Buckets) -> list[tuple[str, float]]:
    return list(zip(bounds, map(float, np.cumsum(buckets.counts)), strict=True))
