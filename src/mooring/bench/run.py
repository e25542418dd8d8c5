"""Running workloads: what came of each, be it figures or the reason why there are none."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum

from mooring.config import ConfigError

from .blueprints import Blueprints
from .cases import Job
from .collector import Measured
from .data_items import DataItem, check_selector, data_items, missed
from .executor import Executor
from .kinds import custom_kinds
from .parameters import DECLARED_FEATURES, resolved
from .problems import Broken, NotPlaced, NotSupported
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
    operations = resolved(job)
    templates = Templates(job.case.file.parent)
    custom = custom_kinds(operations, templates)
    features = int(job.workload.params.get(DECLARED_FEATURES, 0))
    blueprints = Blueprints(templates, custom, features)
    try:
        check_support(operations, templates, custom, job.case.written.default_pod_template_path)
        with closing(make_target(job)) as target:
            executor = Executor(job, target, blueprints)
            executor.run(operations)
            target.check()
    except NotSupported as missing:
        return Result(job, Outcome.NOT_SUPPORTED, str(missing), by=by)
    except ConfigError as refused:
        told = "; ".join(map(str, refused.problems))
        return Result(job, Outcome.NOT_SUPPORTED, told, by=by)
    except (NotPlaced, Broken, AssertionError) as failed:
        return Result(job, Outcome.FAILED, str(failed), by=by)
    finally:
        gc.unfreeze()
    measured = tuple(executor.measured)
    items = tuple(item for each in measured for item in data_items(job, each, by))
    below = missed(job, items)
    outcome = Outcome.MEASURED if below is None else Outcome.BELOW
    return Result(job, outcome, below or "", measured, items, by)
