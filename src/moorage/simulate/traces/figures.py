"""Figures about a trace: how long pods waited, how full nodes were, which GPUs were stranded."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from moorage.cluster import Nodes
from moorage.engine import Engine
from moorage.engine.explain.explanation import ExplanationPart
from moorage.world.cluster_use import GpuDemands

from .arrivals import ArrivalTrace
from .virtual_run import VirtualRun

#: The percentiles of waiting times in reports.
PERCENTILES = (50, 90, 99)

# A trace is sampled at so many moments between the first and the last arrival.
_STEPS = 240


class TraceSample(ExplanationPart, frozen=True):
    """The cluster at one moment."""

    at: float
    running: int
    waiting: int
    preemptions: int
    #: Percent of what nodes have that pods request, by resource.
    use: dict[str, float]
    #: Free GPUs of nodes where no GPU pod of the trace finds the CPU and memory it needs.
    stranded_gpus: int


class TraceFigures(ExplanationPart, frozen=True):
    """The figures of a trace with one configuration."""

    name: str
    nodes: int
    pods: int
    placed: int
    #: Pods that still wait at the end.
    left_waiting: int
    preemptions: int
    #: Seconds that placed pods waited: percentiles as p50 and so on, max and mean.
    waiting_seconds: dict[str, float]
    #: Averages between the first and the last arrival.
    mean_use: dict[str, float]
    mean_stranded_gpus: float
    most_stranded_gpus: int
    #: Virtual seconds from the first arrival to the end.
    seconds: float
    samples: tuple[TraceSample, ...]


def run_trace(name: str, engine: Engine, trace: ArrivalTrace) -> TraceFigures:
    """Runs a trace with an engine, and returns its figures."""
    sampler = _Sampler(engine, trace)
    run = VirtualRun(engine, trace, sampler.look)
    sampler.run = run
    run.run()
    sampler.finish()
    return _sum_up(name, run, sampler.samples)


def _sum_up(name: str, run: VirtualRun, samples: list[TraceSample]) -> TraceFigures:
    resources = samples[-1].use if samples else {}
    first = run.trace.arrivals[0].at if run.trace.arrivals else 0.0
    return TraceFigures(
        name=name,
        nodes=len(run.engine.cluster.nodes),
        pods=len(run.trace.arrivals),
        placed=len(run.waits),
        left_waiting=run.waiting,
        preemptions=run.preemptions,
        waiting_seconds=_describe_waits(run.waits),
        mean_use={
            each: _mean([sample.use.get(each, 0.0) for sample in samples]) for each in resources
        },
        mean_stranded_gpus=_mean([sample.stranded_gpus for sample in samples]),
        most_stranded_gpus=max((sample.stranded_gpus for sample in samples), default=0),
        seconds=run.now - first,
        samples=tuple(samples),
    )


def _describe_waits(waits: list[float]) -> dict[str, float]:
    if not waits:
        return {}
    values = np.percentile(waits, PERCENTILES).tolist()
    percentiles = {f"p{percent}": value for percent, value in zip(PERCENTILES, values, strict=True)}
    return {**percentiles, "max": max(waits), "mean": _mean(waits)}


def _mean(values: list[float] | list[int]) -> float:
    return sum(values) / len(values) if values else 0.0


@dataclass(slots=True)
class _Sampler:
    """Samples the cluster at equal intervals."""

    engine: Engine
    trace: ArrivalTrace
    run: VirtualRun | None = None
    samples: list[TraceSample] = field(default_factory=list)
    _times: list[float] = field(init=False)
    _demands: GpuDemands = field(init=False)

    def __post_init__(self) -> None:
        arrivals = self.trace.arrivals
        first, last = (arrivals[0].at, arrivals[-1].at) if arrivals else (0.0, 0.0)
        self._times = sorted(np.linspace(first, last, _STEPS + 1)[1:].tolist(), reverse=True)
        self._demands = GpuDemands.of(self.trace.pods)

    def look(self, until: float) -> None:
        """Samples up to a time. Call it before anything happens that is later."""
        while self._times and self._times[-1] < until:
            self.samples.append(self._sample(self._times.pop()))

    def finish(self) -> None:
        """Fills the remaining samples with the state at the end."""
        while self._times:
            self.samples.append(self._sample(self._times.pop()))

    def _sample(self, at: float) -> TraceSample:
        run, nodes = self.run, self.engine.cluster.nodes
        assert run is not None, "it is set before the run begins"
        return TraceSample(
            at,
            len(self.engine.cluster.pods),
            run.waiting,
            run.preemptions,
            _measure_use(nodes),
            self._demands.count_stranded(nodes),
        )


def _measure_use(nodes: Nodes) -> dict[str, float]:
    """Returns the percentage in use of each resource that some node has."""
    found = {}
    for name, at in nodes.resources.items():
        has = float(nodes.allocatable[at, nodes.rows].sum(dtype=np.float64))
        if has:
            used = float(nodes.requested[at, nodes.rows].sum(dtype=np.float64))
            found[name] = 100.0 * used / has
    return found
