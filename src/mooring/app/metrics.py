"""What /metrics tells: kube-scheduler's metrics, read from the observations and the engine.

Gauges are computed when somebody asks, on the thread that schedules, so nothing is locked and
nothing is counted on the way of a decision. What may be long is done in slices.
"""

from __future__ import annotations

import asyncio
import platform
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
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

    def __init__(self, engine: Engine, observations: Observations) -> None:
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
        """Everything, in Prometheus' text format."""
        return b"".join([part async for part in self._parts()])

    async def _parts(self) -> AsyncIterator[bytes]:
        rejections = await self._rejections()
        for family in chain(self._counts(rejections), self._histograms()):
            yield generate_latest(_Only(family))
            # Some histograms have thousands of lines.
            await asyncio.sleep(0)
        yield generate_latest(self.registry)

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
            self._leading,
            self._requests,
        )
        return (_family(counts) for counts in counted)

    async def _rejections(self) -> Counter[tuple[str, str]]:
        """How many waiting pods each plugin of each profile rejected."""
        found: Counter[tuple[str, str]] = Counter()
        async for waiting in in_slices(list(self._engine.queue)):
            found.update(_blames(waiting))
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

    def _of_batches(self) -> Iterator[Counts]:
        attempts, flushed = Counts(table.BATCH_ATTEMPTS), Counts(table.BATCH_CACHE_FLUSHED)
        for name, reuse in self._engine.reuse.items():
            told = reuse.statistics.metrics(name)
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


async def in_slices(pods: list[QueuedPod]) -> AsyncIterator[list[QueuedPod]]:
    """Some pods at a time; in between, others get their turn."""
    left = iter(pods)
    while some := list(islice(left, _SLICE)):
        yield some
        await asyncio.sleep(0)


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
