"""Timing decisions: everything is placed first-come, first-served, and every pod must be placed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter

from mooring.config import Configuration
from mooring.engine import Engine
from mooring.engine.actions import Action, BindPod, EvictPod
from mooring.engine.events import Applied, Bound, Evicted, Removed
from mooring.framework.plugin import Registry
from mooring.objects.pod import Pod

from .workloads import HIGH_PRIORITY, LOW_PRIORITY, Workload


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcome of one run."""

    workload: str
    nodes: int
    pods: int
    seconds: float

    @property
    def decisions_per_second(self) -> float:
        return self.pods / self.seconds


class NotAllPlaced(RuntimeError):
    """A run whose time means nothing, because not every pod found a node."""


def measure(
    workload: Workload, nodes: int, pods: int, configuration: Configuration, registry: Registry
) -> Measured:
    """Fills a cluster, then times further pods from the queue to their confirmed place."""
    engine = Engine(configuration, registry)
    for node in workload.nodes(nodes):
        engine.handle(Applied(node), now=0.0)
    _place_all(engine, workload.pods(int(nodes * workload.running_per_node), "before"))
    seconds = _place_all(engine, workload.pods(pods, "pod"))
    return Measured(workload.name, nodes, pods, seconds)


def _place_all(engine: Engine, pods: Iterable[Pod]) -> float:
    waiting = {pod.uid: pod for pod in pods}
    for pod in waiting.values():
        engine.handle(Applied(pod), now=0.0)
    started = perf_counter()
    while waiting:
        bound = [action for action in engine.step(0.0) if isinstance(action, BindPod)]
        if not bound:
            raise NotAllPlaced(f"{len(waiting)} pods stay pending")
        for action in bound:
            pod = waiting.pop(action.pod.uid)
            engine.handle(Bound(pod.uid), now=0.0)
            engine.handle(Applied(pod.on(action.node)), now=0.0)
    return perf_counter() - started


def measure_preemption(
    nodes: int, pods: int, configuration: Configuration, registry: Registry
) -> Measured:
    """Times pods that must evict others: from the queue over the evictions to their place."""
    engine = Engine(configuration, registry)
    for node in LOW_PRIORITY.nodes(nodes):
        engine.handle(Applied(node), now=0.0)
    running = list(LOW_PRIORITY.pods(int(nodes * LOW_PRIORITY.running_per_node), "low"))
    _place_all(engine, running)
    waiting = {pod.uid: pod for pod in HIGH_PRIORITY.pods(pods, "high")}
    started = perf_counter()
    for pod in waiting.values():
        engine.handle(Applied(pod), now=0.0)
    now = 0.0
    while waiting:
        done = engine.step(now)
        for action in done:
            _perform(engine, action, waiting, now)
        if not done:
            # Nothing but backoff is left: let it pass.
            now += 1.0
    return Measured(HIGH_PRIORITY.name, nodes, pods, perf_counter() - started)


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
