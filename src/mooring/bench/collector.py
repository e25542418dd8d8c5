"""Taking figures while a workload runs, and what they come to."""

from __future__ import annotations

import math
import resource
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .ledger import Entry
from .stopwatch import Stopwatch

# As in scheduler_perf.
SAMPLE_SECONDS = 1.0
MEMORY_SAMPLE_SECONDS = 0.5
PERCENTILES = (50, 90, 95, 99)

SCHEDULED, UNSCHEDULABLE = "scheduled", "unschedulable"


@dataclass(frozen=True, slots=True)
class Measured:
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
        """The mean of the samples; of a short run, pods over the time that they took."""
        if self.samples:
            return sum(self.samples) / len(self.samples)
        return self.placed / self.seconds if self.seconds else 0.0

    @property
    def throughput(self) -> dict[str, float]:
        """Average and percentiles of placements a second."""
        return summary(self.samples or (self.pods_per_second,))


def resident_bytes() -> int:
    """The memory that this process has."""
    try:
        with open("/proc/self/statm") as told:
            return int(told.read().split()[1]) * resource.getpagesize()
    except OSError:
        # Elsewhere than on Linux only the highest is told, in KiB.
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

    def counts(self, entry: Entry) -> bool:
        return entry.namespace in self.namespaces and entry.matches(self.labels)

    def handed_over(self) -> None:
        """A pod that counts is about to be known to the scheduler."""
        if self._first is None:
            self._first = self.stopwatch.seconds

    def decided(self, seconds: float, result: str) -> None:
        self._latencies[result].append(seconds)

    def placed(self, entry: Entry, moment: float) -> None:
        """A pod was placed, at that moment of the stopwatch."""
        if self.counts(entry):
            self._placements.append(moment)

    def sample_memory(self) -> None:
        """Notes the memory in use, if it is time to."""
        now = self.stopwatch.seconds
        if now - self._sampled >= MEMORY_SAMPLE_SECONDS:
            self._sampled = now
            self._memory.append(self.resident())

    def finish(self) -> Measured:
        """What was measured up to now."""
        last = self._placements[-1] if self._placements else self.stopwatch.seconds
        first = self._started if self._first is None else self._first
        return Measured(
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
