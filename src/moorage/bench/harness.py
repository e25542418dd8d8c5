"""Runs a workload once, or in many sizes to see how time grows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from moorage.app.python_garbage import unfreeze_objects
from moorage.documents.errors import ConfigError

from .blueprints import Blueprints
from .cases import DECLARED_FEATURES, Job, NotPlaced, NotSupported, RunFailed, resolve
from .custom_kinds import check_support, custom_kinds
from .executor import Executor
from .measurement import Measurement
from .results import DataItem, check_selector, data_items, describe_miss
from .target import BenchTarget
from .templates import Templates

#: Makes a fresh target for a workload; raises ConfigError if its settings are refused.
MakeTarget = Callable[[Job], BenchTarget]


class RunOutcome(StrEnum):
    """What came of a workload."""

    MEASURED = "measured"
    BELOW = "missed its threshold"
    FAILED = "failed"
    NOT_SUPPORTED = "not supported"

    @property
    def is_good(self) -> bool:
        return self in (RunOutcome.MEASURED, RunOutcome.NOT_SUPPORTED)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one run of a workload."""

    job: Job
    outcome: RunOutcome
    #: Why it is not simply measured.
    why: str = ""
    measured: tuple[Measurement, ...] = ()
    items: tuple[DataItem, ...] = ()
    #: The scheduler that was measured, where there are several.
    by: str = ""

    @property
    def title(self) -> str:
        return f"{self.job.full_name} ({self.by})" if self.by else self.job.full_name


def run(job: Job, make_target: MakeTarget, by: str = "") -> Result:
    """Runs a workload on a fresh target.

    It counts only if every pod that should be placed was, and if the target does not contradict
    itself then.
    """
    check_selector(job)
    operations = resolve(job)
    templates = Templates(job.case.file.parent)
    custom = custom_kinds(operations, templates)
    features = int(job.workload.params.get(DECLARED_FEATURES, 0))
    blueprints = Blueprints(templates, custom, features)
    try:
        check_support(operations, templates, custom)
        with closing(make_target(job)) as target:
            executor = Executor(job, target, blueprints)
            executor.run(operations)
            target.check()
    except NotSupported as missing:
        return Result(job, RunOutcome.NOT_SUPPORTED, str(missing), by=by)
    except ConfigError as refused:
        text = "; ".join(map(str, refused.problems))
        return Result(job, RunOutcome.NOT_SUPPORTED, text, by=by)
    except (NotPlaced, RunFailed, AssertionError) as failed:
        return Result(job, RunOutcome.FAILED, str(failed), by=by)
    finally:
        unfreeze_objects()
    measured = tuple(executor.measured)
    items = tuple(item for each in measured for item in data_items(job, each, by))
    below = describe_miss(job, items)
    outcome = RunOutcome.MEASURED if below is None else RunOutcome.BELOW
    return Result(job, outcome, below or "", measured, items, by)


@dataclass(frozen=True, slots=True)
class ProgressPoint:
    """One size, and the time that a pod took there."""

    nodes: int
    pods: int
    seconds_per_pod: float


@dataclass(frozen=True, slots=True)
class Growth:
    """The sweep of one test case."""

    name: str
    points: tuple[ProgressPoint, ...]
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
        """Yields the workload in every size."""
        for parameter in (self.nodes_parameter, self.pods_parameter):
            if parameter not in job.workload.params:
                raise job.error(f"params.{parameter}", "is required, because sizes are set by it")
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
        if result.outcome is RunOutcome.MEASURED and result.measured[-1].placed:
            rate = result.measured[-1].pods_per_second
            points.append(ProgressPoint(nodes, pods, 1 / rate))
    return Growth(job.case.name, tuple(points), tuple(results))


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """Returns the power law that fits best: the slope of a straight line through the logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x = math.fsum(x for x, _ in logs) / len(logs)
    mean_y = math.fsum(y for _, y in logs) / len(logs)
    above = math.fsum((x - mean_x) * (y - mean_y) for x, y in logs)
    return above / math.fsum((x - mean_x) ** 2 for x, _ in logs)
