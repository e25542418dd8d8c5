"""Running workloads: what came of each, be it figures or the reason why there are none."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from mooring.config import ConfigError

from .blueprints import Blueprints
from .cases import Job
from .collector import Measured
from .data_items import DataItem, check_selector, data_items, missed
from .executor import Executor
from .parameters import DECLARED_FEATURES, resolved
from .problems import NotPlaced, NotSupported
from .support import check_support
from .target import Target
from .templates import Templates

#: Makes a fresh target for a workload; raises ConfigError if its settings are refused.
MakeTarget = Callable[[Job], Target]


class Outcome(StrEnum):
    """What came of a workload."""

    MEASURED = "measured"
    BELOW = "missed its threshold"
    FAILED = "failed"
    NOT_SUPPORTED = "not supported"

    @property
    def is_good(self) -> bool:
        return self in (Outcome.MEASURED, Outcome.NOT_SUPPORTED)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one run of a workload."""

    job: Job
    outcome: Outcome
    #: Why it is not simply measured.
    why: str = ""
    measured: tuple[Measured, ...] = ()
    items: tuple[DataItem, ...] = ()


def run(job: Job, make_target: MakeTarget) -> Result:
    """Runs a workload on a fresh target.

    It counts only if every pod that should be placed was, and if the target does not contradict
    itself then.
    """
    check_selector(job)
    operations = resolved(job)
    templates = Templates(job.case.file.parent)
    blueprints = Blueprints(templates, int(job.workload.params.get(DECLARED_FEATURES, 0)))
    try:
        check_support(operations, templates, job.case.written.default_pod_template_path)
        target = make_target(job)
        executor = Executor(job, target, blueprints)
        executor.run(operations)
        target.check()
    except NotSupported as missing:
        return Result(job, Outcome.NOT_SUPPORTED, str(missing))
    except ConfigError as refused:
        told = "; ".join(map(str, refused.problems))
        return Result(job, Outcome.NOT_SUPPORTED, told)
    except (NotPlaced, AssertionError) as failed:
        return Result(job, Outcome.FAILED, str(failed))
    finally:
        gc.unfreeze()
    measured = tuple(executor.measured)
    items = tuple(item for each in measured for item in data_items(job, each))
    below = missed(job, items)
    outcome = Outcome.MEASURED if below is None else Outcome.BELOW
    return Result(job, outcome, below or "", measured, items)
