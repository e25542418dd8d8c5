"""Timing decisions. A run counts only if every pod was placed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from mooring.engine import Engine
from mooring.engine.actions import Action, BindPod, EvictPod
from mooring.engine.events import Applied, Bound, Evicted, Removed
from mooring.objects.pod import Pod

from .workloads import HIGH_PRIORITY, LOW_PRIORITY, Workload


class MakeEngine(Protocol):
    """Makes an engine with nothing in it; keywords switch feature gates."""

    def __call__(self, **gates: bool) -> Engine: ...


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcome of one run."""

    workload: str
    nodes: int
    pods: int
    #: Spent in deciding alone, and with taking in what came of it.
    deciding_seconds: float
    seconds: float

    @property
    def decisions_per_second(self) -> float:
        return self.pods / self.deciding_seconds

    @property
    def pods_per_second(self) -> float:
        return self.pods / self.seconds


# Virtual seconds without any decision after which a run has failed.
_PATIENCE = 60.0


class NotAllPlaced(RuntimeError):
    """A run whose time means nothing, because not every pod found a node."""


def measure(
    workload: Workload, nodes: int, pods: int, make_engine: Callable[[], Engine]
) -> Measured:
    """Fills a cluster, then times further pods from the queue to their confirmed place."""
    engine = make_engine()
    fill(engine, workload, nodes)
    place_all(engine, workload.pods(int(nodes * workload.running_per_node), "before"))
    deciding, seconds = place_all(engine, workload.pods(pods, "pod"))
    return Measured(workload.name, nodes, pods, deciding, seconds)


def measure_preemption(nodes: int, pods: int, make_engine: Callable[[], Engine]) -> Measured:
    """Times pods that must evict others: from the queue over the evictions to their place."""
    engine = make_engine()
    fill(engine, LOW_PRIORITY, nodes)
    place_all(engine, LOW_PRIORITY.pods(int(nodes * LOW_PRIORITY.running_per_node), "low"))
    deciding, seconds = place_all(engine, HIGH_PRIORITY.pods(pods, "high"), at_once=1)
    return Measured(HIGH_PRIORITY.name, nodes, pods, deciding, seconds)


def fill(engine: Engine, workload: Workload, nodes: int) -> None:
    """Gives an engine its nodes."""
    for node in workload.nodes(nodes):
        engine.handle(Applied(node), now=0.0)


def place_all(engine: Engine, pods: Iterable[Pod], at_once: int = 64) -> tuple[float, float]:
    """Drives the engine until all pods are placed; returns the seconds of deciding and in all."""
    waiting = {pod.uid: pod for pod in pods}
    for pod in waiting.values():
        engine.handle(Applied(pod), now=0.0)
    deciding = now = 0.0
    started = perf_counter()
    while waiting:
        before = perf_counter()
        actions = engine.step(now, at_once)
        deciding += perf_counter() - before
        for action in actions:
            _perform(engine, action, waiting, now)
        if not actions:
            # Nothing but backoff is left: let it pass, but not forever.
            now += 1.0
            if now > _PATIENCE:
                raise NotAllPlaced(f"{len(waiting)} pods stay pending")
    return deciding, perf_counter() - started


def _perform(engine: Engine, action: Action, waiting: dict[str, Pod], now: float) -> None:
    match action:
        case BindPod(ref, node):
            pod = waiting.pop(ref.uid)
            engine.handle(Bound(pod.uid), now)
            engine.handle(Applied(pod.on(node)), now)
        case EvictPod(ref, preemptor):
            engine.handle(Evicted(ref.uid, preemptor.uid), now)
            victim = engine.cluster.pod(ref.uid)
            if victim is not None:
                engine.handle(Removed(victim), now)
