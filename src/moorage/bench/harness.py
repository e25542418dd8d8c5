"""Runs a workload once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum

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
