"""Measuring a run: the stopwatch, the ledger of its pods, and the collector of figures."""

from __future__ import annotations

import math
import resource
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter, process_time

import numpy as np

#: Tells the time in seconds, from wherever.
Clock = Callable[[], float]


class Stopwatch:
    """Seconds of the wall and of the processor since it was made, without its pauses."""

    def __init__(self, wall: Clock = perf_counter, processor: Clock = process_time) -> None:
        self.wall = wall
        self._processor = processor
        self._started, self._started_processor = wall(), processor()
        self._stopped, self._stopped_processor = 0.0, 0.0
        self._depth = 0

    @property
    def seconds(self) -> float:
        return self.wall() - self._started

    @property
    def processor_seconds(self) -> float:
        return self._processor() - self._started_processor

    def pause(self) -> Pause:
        """Returns a context within which the clock stands still."""
        return Pause(self)

    def stop(self) -> None:
        """Stops the clock until it is started as often as it was stopped."""
        if not self._depth:
            self._stopped, self._stopped_processor = self.wall(), self._processor()
        self._depth += 1

    def start(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._started += self.wall() - self._stopped
            self._started_processor += self._processor() - self._stopped_processor


class Pause:
    """A context within which a stopwatch stands still. It is entered for every few decisions."""

    def __init__(self, stopwatch: Stopwatch) -> None:
        self._stopwatch = stopwatch

    def __enter__(self) -> None:
        self._stopwatch.stop()

    def __exit__(self, *_: object) -> None:
        self._stopwatch.start()


@dataclass(slots=True, eq=False)
class PodEntry:
    """A pod that the harness has made."""

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    has_finalizers: bool = False
    #: The node that it has, or had.
    is_placed: bool = False
    is_attempted: bool = False
    #: Why it was not placed when it was tried last.
    message: str = ""

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not labels or all(self.labels.get(key) == value for key, value in labels.items())


@dataclass(slots=True, eq=False)
class Watch:
    """Pods that something waits for: until they are placed, or until they were tried."""

    missing: set[str]
    is_for_attempts: bool = False


@dataclass(slots=True)
class Ledger:
    """The pods of a run, by uid."""

    entries: dict[str, PodEntry] = field(default_factory=dict)
    #: How many were placed in all, those that are gone by now among them.
    placed_count: int = 0
    _names: dict[tuple[str, str], str] = field(default_factory=dict)
    _watches: list[Watch] = field(default_factory=list)

    def add(self, entry: PodEntry) -> None:
        self.entries[entry.uid] = entry
        self._names[entry.namespace, entry.name] = entry.uid

    def find(self, namespace: str, name: str) -> PodEntry | None:
        uid = self._names.get((namespace, name))
        return None if uid is None else self.entries[uid]

    def of(self, namespace: str, labels: Mapping[str, str]) -> Iterator[PodEntry]:
        """Yields the pods of a namespace that have these labels."""
        for entry in self.entries.values():
            if entry.namespace == namespace and entry.matches(labels):
                yield entry

    def watch(self, uids: Iterable[str], *, for_attempts: bool = False) -> Watch:
        """Starts to watch pods that are not yet placed."""
        missing = {uid for uid in uids if self._is_missing(uid, for_attempts)}
        watch = Watch(missing, for_attempts)
        self._watches.append(watch)
        return watch

    def unwatch(self, watch: Watch) -> None:
        self._watches.remove(watch)

    def mark_placed(self, uid: str) -> PodEntry | None:
        """Notes that a pod has a node; returns None if the pod is not one of ours."""
        entry = self.entries.get(uid)
        if entry is None:
            return None
        if not entry.is_placed:
            entry.is_placed = True
            self.placed_count += 1
        for watch in self._watches:
            watch.missing.discard(uid)
        return entry

    def mark_attempted(self, uid: str, message: str) -> None:
        """Notes that a pod was tried, or is held by a gate, and has no node."""
        entry = self.entries.get(uid)
        if entry is not None:
            entry.is_attempted, entry.message = True, message
            for watch in self._watches:
                if watch.is_for_attempts:
                    watch.missing.discard(uid)

    def remove(self, uid: str) -> PodEntry | None:
        """Removes a pod that was deleted or evicted; no watch waits for it any more."""
        entry = self.entries.pop(uid, None)
        if entry is not None:
            self._names.pop((entry.namespace, entry.name), None)
            for watch in self._watches:
                watch.missing.discard(uid)
        return entry

    def _is_missing(self, uid: str, for_attempts: bool) -> bool:
        entry = self.entries.get(uid)
        if entry is None or entry.is_placed:
            return False
        return not (for_attempts and entry.is_attempted)


# As in scheduler_perf.
SAMPLE_SECONDS = 1.0
MEMORY_SAMPLE_SECONDS = 0.5
PERCENTILES = (50, 90, 95, 99)

SCHEDULED, UNSCHEDULABLE = "scheduled", "unschedulable"


@dataclass(frozen=True, slots=True)
class Measurement:
    """The figures of one measurement. Seconds are of the stopwatch, from its start."""

    name: str
    #: Placements a second, one for each second of the run; none if it was too short.
    samples: tuple[float, ...]
    placed: int
    seconds: float
    processor_seconds: float
    #: When each pod was placed.
    placements: Sequence[float]
    #: How long each decision took, by its result.
    latencies: Mapping[str, Sequence[float]]
    memory_bytes: tuple[int, ...]

    @property
    def decisions(self) -> int:
        return sum(map(len, self.latencies.values()))

    @property
    def deciding_seconds(self) -> float:
        return sum(math.fsum(each) for each in self.latencies.values())

    @property
    def pods_per_second(self) -> float:
        """The mean of the samples; for a short run, pods divided by their time."""
        if self.samples:
            return sum(self.samples) / len(self.samples)
        return self.placed / self.seconds if self.seconds else 0.0

    @property
    def throughput(self) -> dict[str, float]:
        """Average and percentiles of placements a second."""
        return summary(self.samples or (self.pods_per_second,))


def resident_bytes() -> int:
    """Returns the memory that this process has."""
    try:
        with open("/proc/self/statm") as text:
            return int(text.read().split()[1]) * resource.getpagesize()
    except OSError:
        # Other systems report only the peak, in KiB.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@dataclass(slots=True)
class Collector:
    """Watches the pods of some namespaces with some labels."""

    name: str
    namespaces: frozenset[str]
    labels: Mapping[str, str]
    stopwatch: Stopwatch
    #: Tells the memory that the scheduler has.
    resident: Callable[[], int] = resident_bytes
    _started: float = 0.0
    _processor: float = 0.0
    #: When the first pod that counts was handed over.
    _first: float | None = None
    _placements: array[float] = field(default_factory=lambda: array("d"))
    _latencies: dict[str, array[float]] = field(
        default_factory=lambda: {SCHEDULED: array("d"), UNSCHEDULABLE: array("d")}
    )
    _memory: list[int] = field(default_factory=list)
    _sampled: float = -MEMORY_SAMPLE_SECONDS

    def __post_init__(self) -> None:
        self._started = self.stopwatch.seconds
        self._processor = self.stopwatch.processor_seconds

    def counts(self, entry: PodEntry) -> bool:
        return entry.namespace in self.namespaces and entry.matches(self.labels)

    def mark_start(self) -> None:
        """Notes that a pod which counts is about to be known to the scheduler."""
        if self._first is None:
            self._first = self.stopwatch.seconds

    def add_decision(self, seconds: float, result: str) -> None:
        self._latencies[result].append(seconds)

    def add_placement(self, entry: PodEntry, moment: float) -> None:
        """Notes that a pod was placed at that moment of the stopwatch."""
        if self.counts(entry):
            self._placements.append(moment)

    def sample_memory(self) -> None:
        """Notes the memory in use, if it is time to."""
        now = self.stopwatch.seconds
        if now - self._sampled >= MEMORY_SAMPLE_SECONDS:
            self._sampled = now
            self._memory.append(self.resident())

    def finish(self) -> Measurement:
        """Returns the measurement so far."""
        last = self._placements[-1] if self._placements else self.stopwatch.seconds
        first = self._started if self._first is None else self._first
        return Measurement(
            name=self.name,
            samples=tuple(throughput_samples(self._placements, self._started, last)),
            placed=len(self._placements),
            seconds=last - first,
            processor_seconds=self.stopwatch.processor_seconds - self._processor,
            placements=tuple(each - self._started for each in self._placements),
            latencies=self._latencies,
            memory_bytes=(*self._memory, self.resident()),
        )


def throughput_samples(placements: Sequence[float], started: float, ended: float) -> list[float]:
    """Placements a second, looked at every second as scheduler_perf does.

    Nothing is sampled before the first placement was seen, and that look only begins the count.
    A second without a placement waits for the next one and gets the same figure.
    """
    ticks = np.arange(1, math.floor((ended - started) / SAMPLE_SECONDS) + 1) * SAMPLE_SECONDS
    seen = np.searchsorted(np.asarray(placements), ticks + started, side="right").tolist()
    samples: list[float] = []
    before, skipped = 0, 0
    for count in seen:
        if not before:
            before = count
        elif count == before:
            skipped += 1
        else:
            rate = (count - before) / (SAMPLE_SECONDS * (skipped + 1))
            samples += [rate] * (skipped + 1)
            before, skipped = count, 0
    return samples


def summary(values: Sequence[float]) -> dict[str, float]:
    """Average and percentiles, the latter always one of the values."""
    ordered = sorted(values)
    found = {"Average": math.fsum(ordered) / len(ordered)}
    for percentile in PERCENTILES:
        found[f"Perc{percentile}"] = ordered[math.ceil(len(ordered) * percentile / 100) - 1]
    return found


_MILLI, _MICRO, _MEBI = 1e3, 1e6, 2**20
