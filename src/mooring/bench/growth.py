"""How time grows with nodes and with pods: sweeps of a workload, and the exponent behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from .cases import Job
from .run import MakeTarget, Outcome, Result, run


@dataclass(frozen=True, slots=True)
class Point:
    """One size, and the time that a pod took there."""

    nodes: int
    pods: int
    seconds_per_pod: float


@dataclass(frozen=True, slots=True)
class Growth:
    """The sweep of one test case."""

    name: str
    points: tuple[Point, ...]
    results: tuple[Result, ...]

    @property
    def pod_counts(self) -> list[int]:
        """The numbers of pods that were measured."""
        return sorted({point.pods for point in self.points})

    @property
    def with_nodes(self) -> float | None:
        """The exponent of the time per pod in the number of nodes, at the most pods measured."""
        most = max((each.pods for each in self.points), default=0)
        chosen = [each for each in self.points if each.pods == most]
        return exponent([(each.nodes, each.seconds_per_pod) for each in chosen])

    @property
    def with_pods(self) -> float | None:
        """The exponent of the time for all pods in their number, at the most nodes measured."""
        most = max((each.nodes for each in self.points), default=0)
        chosen = [each for each in self.points if each.nodes == most]
        return exponent([(each.pods, each.seconds_per_pod * each.pods) for each in chosen])


@dataclass(frozen=True, slots=True)
class Sweep:
    """The sizes, and the parameters of workloads that they are put into."""

    nodes: Sequence[int]
    pods: Sequence[int]
    nodes_parameter: str = "initNodes"
    pods_parameter: str = "measurePods"

    def jobs(self, job: Job) -> Iterator[tuple[int, int, Job]]:
        """The workload in every size."""
        for parameter in (self.nodes_parameter, self.pods_parameter):
            if parameter not in job.workload.params:
                raise job.error(f"params.{parameter}", "is needed to sweep it")
        for nodes in self.nodes:
            for pods in self.pods:
                sizes = {self.nodes_parameter: nodes, self.pods_parameter: pods}
                workload = msgspec.structs.replace(
                    job.workload,
                    name=f"{nodes}Nodes_{pods}Pods",
                    params={**job.workload.params, **sizes},
                    # A threshold is for the size that it was written for.
                    threshold=0.0,
                )
                yield nodes, pods, replace(job, workload=workload)


def grow(job: Job, sweep: Sweep, make_target: MakeTarget, begin: Callable[[Job], None]) -> Growth:
    """Runs a workload in every size."""
    points, results = [], []
    for nodes, pods, sized in sweep.jobs(job):
        begin(sized)
        result = run(sized, make_target)
        results.append(result)
        if result.outcome is Outcome.MEASURED and result.measured[-1].placed:
            rate = result.measured[-1].pods_per_second
            points.append(Point(nodes, pods, 1 / rate))
    return Growth(job.case.name, tuple(points), tuple(results))


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """The power law that fits best: the slope of a straight line through the logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x = math.fsum(x for x, _ in logs) / len(logs)
    mean_y = math.fsum(y for _, y in logs) / len(logs)
    above = math.fsum((x - mean_x) * (y - mean_y) for x, y in logs)
    return above / math.fsum((x - mean_x) ** 2 for x, _ in logs)
