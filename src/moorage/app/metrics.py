"""The content of /metrics: kube-scheduler's metrics, read from the observations and the engine.

Gauges are computed on request, on the deciding thread, so that nothing is locked and decisions
count nothing. Long computations run in slices. The serving thread writes the text.
"""

from __future__ import annotations

import asyncio
import platform
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from typing import Protocol

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import generate_latest

import moorage
from moorage.cluster.extended.resources import ExtendedView
from moorage.engine import Engine
from moorage.framework.plugin import Plugin
from moorage.framework.profile import Profile
from moorage.framework.sections import ShowFigures
from moorage.framework.series import Counts, Histogram, Metric, Series
from moorage.framework.status import PluginError
from moorage.queue import Entity
from moorage.web.engine_reads import Read, in_slices

from . import logs, metric_table as table
from .metric_text import add_of_profile, make_family, write_family
from .observations import Observations

_log = logs.make_log(__name__)

# Pods that are looked at before decisions get their turn again: about two milliseconds.
_SLICE = 2_000


class WorkerFigures(Protocol):
    """The figures of a scheduler's connection to its API server."""

    @property
    def absent(self) -> list[str]: ...

    @property
    def left_out(self) -> Mapping[str, int]: ...

    @property
    def dropped_events(self) -> int: ...

    @property
    def claim_creations(self) -> Mapping[str, int]: ...

    @property
    def extender_series(self) -> Iterable[Series]: ...


class Metrics:
    """All metrics of a process: Moorage's, and those that plugins declare."""

    def __init__(
        self,
        engine: Engine,
        observations: Observations,
        read: Read = in_slices,
        stall_seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`stall_seconds` returns for how many seconds no decision has ended."""
        self._read = read
        self._stall_seconds = stall_seconds
        #: As they were read last, for when a decision takes so long that they cannot be read.
        self._latest: list[Family] = []
        self._engine = engine
        self._observations = observations
        self._leading = Counts(table.LEADER)
        self._requests = Counts(table.REQUESTS)
        self._request_durations = Histogram(table.REQUEST_DURATION)
        self._worker: WorkerFigures | None = None
        self._process = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._process)
        _check_names(engine.profiles.values())

    # Hooks for leadership and requests

    def note_leading(self, name: str, leading: bool) -> None:
        """Notes who holds the lease of that name."""
        self._leading.set((name,), int(leading))

    def count_request(self, method: str, host: str, code: int | None, seconds: float) -> None:
        """Counts a request to the API server. An empty code means that there was no answer."""
        self._requests.add(("<error>" if code is None else str(code), method, host))
        self._request_durations.observe((method, host), seconds)

    def follow(self, worker: WorkerFigures) -> None:
        """Includes the figures of this worker from now on."""
        self._worker = worker

    # Reading

    async def text(self) -> bytes:
        """Returns all metrics in Prometheus' text format; older ones if a decision takes long."""
        with suppress(TimeoutError):
            self._latest = await self._read(self._families())
        parts = []
        for family in (*self._latest, *map(make_family, self._of_now())):
            parts.append(write_family(family))
            # Some histograms have thousands of lines.
            await asyncio.sleep(0)
        return b"".join((*parts, generate_latest(self._process)))

    def _of_now(self) -> Iterator[Counts]:
        """Yields metrics that need no answer of the deciding thread."""
        yield self._leading
        yield Counts(table.STALL, [((), self._stall_seconds())])

    def _families(self) -> Generator[None, None, list[Family]]:
        rejections = yield from self._look_at_queue()
        shown = yield from self._of_cluster()
        extended = yield from _add_up_extended(self._engine.cluster.extended)
        series = chain(
            self._observations.series(),
            self._of_batches(),
            self._of_queue(),
            self._of_worker(),
            self._of_process(),
            (Counts(table.UNSCHEDULABLE_PODS, rejections.items()),),
            (extended, *shown),
            (self._requests, self._request_durations),
        )
        found = []
        for family in chain(map(make_family, series), self._of_plugins()):
            found.append(family)
            yield
        return found

    def _look_at_queue(self) -> Generator[None, None, Counter[tuple[str, str]]]:
        """Counts waiting pods that each plugin of each profile rejected."""
        found: Counter[tuple[str, str]] = Counter()
        left = iter(list(self._engine.queue))
        while some := list(islice(left, _SLICE)):
            found.update(_blames(some))
            yield
        return found

    def _of_cluster(self) -> Generator[None, None, list[Series]]:
        """Returns the figures of the cluster that plugins show."""
        found: dict[str, Series] = {}
        profiles = self._engine.profiles.values()
        plugins = {each.name: each for one in profiles for each in one.plugins.values()}
        for plugin in plugins.values():
            if isinstance(plugin, ShowFigures):
                waiting = [queued.pod for queued in list(self._engine.queue)]
                try:
                    for series in plugin.figures(self._engine.cluster.nodes, waiting):
                        if series is not None:
                            found.setdefault(series.metric.name, series)
                        yield
                except Exception as error:  # noqa: BLE001 - other metrics are written anyway
                    _warn(plugin, error)
        own = {each.name for each in table.METRICS}
        return [series for name, series in found.items() if name not in own]

    def _of_queue(self) -> Iterator[Counts]:
        engine = self._engine
        queue, cluster = engine.queue, engine.cluster
        yield _by_one(table.PENDING_PODS, queue.sizes())
        yield _by_one(table.INFLIGHT_EVENTS, queue.count_remembered())
        yield Counts(table.QUEUE_INCOMING_PODS, queue.incoming.items())
        sizes = {
            "nodes": len(cluster.nodes),
            "pods": len(cluster.pods),
            "assumed_pods": cluster.assumed_count,
        }
        yield _by_one(table.CACHE_SIZE, sizes)
        yield _by_one(table.CAUGHT_ERRORS, engine.caught)
        yield _by_one(table.TOO_COSTLY_PODS, engine.too_costly)
        yield Counts(table.QUEUED_ENTITIES, queue.entities())
        yield Counts(table.QUEUE_INCOMING_ENTITIES, queue.incoming_entities.items())

    def _of_batches(self) -> Iterator[Counts]:
        """Yields how pods share answers, and which plugins prevent it."""
        attempts, flushed = Counts(table.BATCH_ATTEMPTS), Counts(table.BATCH_CACHE_FLUSHED)
        unsigned, alike = Counts(table.UNSIGNED_PODS), Counts(table.LIKE_PODS)
        apart, kept = Counts(table.TOLD_APART), self._engine.classes.items()
        for name, classes in kept:
            statistics = classes.statistics
            figures = statistics.metrics(name)
            for counts in (attempts, flushed):
                counts.add_all(figures[counts.metric.name].items())
            unsigned.add_all(
                ((name, by, why.value), count) for (by, why), count in statistics.unsigned.items()
            )
            alike.add_all(((name, each), n) for each, n in statistics.by_likeness.items())
            apart.add_all(((name, plugin), n) for plugin, n in statistics.apart.items())
        yield from (attempts, flushed, unsigned, alike, apart)
        yield _by_one(table.CLASSES, {name: len(each) for name, each in kept})
        yield _by_one(table.CLASS_BYTES, {name: each.bytes for name, each in kept})

    def _of_worker(self) -> Iterator[Series]:
        worker = self._worker
        left_out = dict(worker.left_out) if worker else {}
        yield _by_one(table.LEFT_OUT, left_out)
        yield _by_one(table.ABSENT_KIND, dict.fromkeys(worker.absent if worker else (), 1))
        yield Counts(table.DROPPED_EVENTS, [((), worker.dropped_events if worker else 0)])
        yield _by_one(table.CLAIM_CREATES, worker.claim_creations if worker else {})
        if worker is None:
            yield from (Counts(table.EXTENDER_CALLS), Histogram(table.EXTENDER_DURATION))
        else:
            yield from worker.extender_series

    def _of_plugins(self) -> Iterator[Family]:
        """Returns metrics that plugins declare.

        Those of a plugin in two profiles are one metric.
        """
        families: dict[str, Family] = {}
        for profile in self._engine.profiles.values():
            for plugin in profile.plugins.values():
                try:
                    for series in plugin.metrics():
                        add_of_profile(families, profile.name, series)
                except Exception as error:  # noqa: BLE001 - other metrics are written anyway
                    _warn(plugin, error)
        return iter(families.values())

    def _of_process(self) -> Iterator[Counts]:
        gates = self._engine.configuration.gates
        yield Counts(table.FEATURE_ENABLED, (((name, ""), int(gates[name])) for name in gates))
        build = moorage.__version__, platform.python_version()
        yield Counts(table.BUILD_INFO, [(build, 1)])


def _warn(plugin: Plugin, error: Exception) -> None:
    _log.warning("Could not read the metrics of a plugin", plugin=plugin.name, error=error)


def _blames(waiting: Iterable[Entity]) -> Iterator[tuple[str, str]]:
    for queued in waiting:
        for plugin in queued.waking_plugins:
            yield plugin, queued.pod.spec.scheduler_name


def _add_up_extended(extended: ExtendedView) -> Generator[None, None, Counts]:
    """Returns the figures of extended resources, summed over nodes."""
    sums = Counts(table.EXTENDED_RESOURCE)
    for resource_type in extended:
        left = iter(extended.figures(resource_type))
        while some := list(islice(left, _SLICE)):
            for figures in some:
                for name, value in figures.items():
                    sums.add((resource_type, name), value)
            yield
    return sums


def _by_one(metric: Metric, values: Mapping[str, int]) -> Counts:
    """Makes a metric with one label."""
    return Counts(metric, (((label,), value) for label, value in values.items()))


def _check_names(profiles: Iterable[Profile]) -> None:
    """Raises PluginError if a plugin declares a metric that is there already."""
    owners = dict.fromkeys((each.name for each in table.METRICS), "the scheduler")
    for profile in profiles:
        for plugin in profile.plugins.values():
            for series in plugin.metrics():
                name = series.metric.name
                if owners.setdefault(name, plugin.name) != plugin.name:
                    text = f'plugin "{plugin.name}": metric {name} belongs to {owners[name]}'
                    raise PluginError(text, plugin.name)
