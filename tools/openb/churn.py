"""Arrivals and departures: how full a cluster stays while pods come and go.

By the times of the trace, 71 GPUs are in use at most, so nobody ever waits. Here pods come faster:
first all of them in order, until as many GPUs are asked for as there are, and then, turn by turn, a
pod at random leaves and the next one of the trace comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

import msgspec

from moorage.engine import Engine
from moorage.engine.actions import BindPod
from moorage.framework.plugin import Registry
from moorage.objects.pod import Pod
from moorage.simulate.traces.arrivals import ArrivalTrace
from moorage.simulate.traces.csv_trace import GPU
from moorage.world import World
from moorage.world.cluster_use import measure_free

from .study import SETTINGS, configure, wants_gpu

# The same pods leave in every setting as far as they are placed there.
_SEED = 7
# Longer than any backoff, so that pods that were woken are tried in the next turn.
_SECONDS_PER_TURN = 20.0


@dataclass(frozen=True, slots=True)
class ChurnOutcome:
    """Means over the turns."""

    setting: str
    gpus_allocated: float
    gpu_pods_waiting: float
    cpu_pods_waiting: float


def churn(trace: ArrivalTrace, plugins: Registry, turns: int) -> Iterator[ChurnOutcome]:
    """The outcome in each setting, one after the other."""
    for setting in SETTINGS:
        run = _Run(trace, Engine(configure(setting, plugins), plugins))
        run.fill()
        seen = [run.turn() for _ in range(turns)]
        gpus, waiting, others = (sum(each) / turns for each in zip(*seen, strict=True))
        yield ChurnOutcome(setting, gpus, waiting, others)


class _Run:
    """One cluster over time."""

    def __init__(self, trace: ArrivalTrace, engine: Engine) -> None:
        self._trace = trace
        self._engine = engine
        self._world = World(engine)
        self._random = Random(_SEED)
        self._next = iter(self._arrivals())
        self._now = 0.0
        self._gpus = sum(dict(node.allocatable).get(GPU, 0) for node in trace.nodes)
        for node in trace.nodes:
            self._world.apply(node, self._now)

    def _arrivals(self) -> Iterator[Pod]:
        for lap in count():
            for pod in self._trace.pods:
                name = f"{pod.name}-{lap}"
                yield msgspec.structs.replace(pod, name=name, uid=name)

    def fill(self) -> None:
        """Has pods come until they ask for all GPUs."""
        asked = 0
        while asked < self._gpus:
            pod = next(self._next)
            asked += dict(pod.spec.requests).get(GPU, 0)
            self._world.apply(pod, self._now)
        self._decide()

    def turn(self) -> tuple[int, int, int]:
        """A pod leaves and one comes; returns GPUs in use, and GPU and CPU pods that wait."""
        self._now += _SECONDS_PER_TURN
        placed = sorted(self._engine.cluster.pods)
        leaving = self._engine.cluster.pods[self._random.choice(placed)]
        self._world.remove(leaving, self._now)
        self._world.apply(next(self._next), self._now)
        self._decide()
        waiting = self._engine.pending_pods.values()
        gpu_pods = sum(map(wants_gpu, waiting))
        in_use = self._gpus - int(measure_free(self._engine.cluster.nodes, GPU).sum())
        return in_use, gpu_pods, len(waiting) - gpu_pods

    def _decide(self) -> None:
        while actions := self._engine.step(self._now, budget=256):
            for action in actions:
                if isinstance(action, BindPod):
                    self._world.bind(action, self._now)
