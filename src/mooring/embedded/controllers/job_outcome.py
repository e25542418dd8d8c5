"""How far a job has come, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mooring.embedded.wire import Json

from . import indexes
from .items import PodItem
from .statuses import condition_of, with_condition, without_zeros

INDEX = "batch.kubernetes.io/job-completion-index"

#: The condition that ends a job, its reason and its message.
Outcome = tuple[str, str, str]


@dataclass(slots=True)
class Tally:
    """The pods of a job that are gone, as far as they counted."""

    succeeded: int = 0
    failed: int = 0
    _spared: set[str] = field(default_factory=set)

    @classmethod
    def since(cls, status: Json, pods: list[PodItem]) -> Tally:
        """What a status counts beyond the pods that are still there."""
        succeeded = sum(pod.phase == "Succeeded" for pod in pods)
        failed = sum(_has_failed(pod) for pod in pods)
        return cls(
            max(status.get("succeeded", 0) - succeeded, 0),
            max(status.get("failed", 0) - failed, 0),
        )

    def spare(self, pods: Iterable[PodItem]) -> None:
        """These are removed on purpose."""
        self._spared.update(pod.uid for pod in pods)

    def is_spared(self, pod: PodItem) -> bool:
        return pod.uid in self._spared

    def count_gone(self, pod: PodItem) -> None:
        if pod.phase == "Succeeded":
            self.succeeded += 1
        elif pod.uid not in self._spared:
            self.failed += 1
        self._spared.discard(pod.uid)


@dataclass(frozen=True, slots=True)
class Counts:
    """The pods of a job, counted."""

    active: list[PodItem]
    succeeded: int
    failed: int
    ready: int
    terminating: int
    #: How many pods there should be now.
    wanted: int
    #: The indexes that are done; None for jobs without indexes.
    completed: set[int] | None
    #: The indexes that need a pod, in order.
    open_indexes: list[int]
    #: Failures since the last success, and when the last of them was.
    failed_lately: int
    last_failure: float

    @classmethod
    def of(cls, item: Json, pods: list[PodItem], tally: Tally) -> Counts:
        spec, status = item["spec"], item.get("status") or {}
        active = [pod for pod in pods if pod.active]
        done = [pod for pod in pods if pod.phase == "Succeeded"]
        failed = [pod for pod in pods if _has_failed(pod) and not tally.is_spared(pod)]
        succeeded = tally.succeeded + len(done)
        completed, open_indexes = None, []
        if spec["completionMode"] == "Indexed":
            everyone = range(spec["completions"])
            completed = indexes.read(status.get("completedIndexes", ""))
            completed = (completed | {_index(pod) for pod in done}) & set(everyone)
            taken = completed | {_index(pod) for pod in active}
            open_indexes = [index for index in everyone if index not in taken]
            succeeded = len(completed)
        since = max((_ended_at(pod) for pod in done), default=0.0)
        late = [pod for pod in failed if _ended_at(pod) >= since and pod.phase == "Failed"]
        return cls(
            active=active,
            succeeded=succeeded,
            failed=tally.failed + len(failed),
            ready=sum(pod.ready for pod in active),
            terminating=sum(pod.terminating for pod in pods),
            wanted=_wanted(spec, succeeded, len(active)),
            completed=completed,
            open_indexes=open_indexes,
            failed_lately=len(late),
            last_failure=max((_ended_at(pod) for pod in late), default=0.0),
        )


def outcome(item: Json, counts: Counts, now: float) -> Outcome | None:
    """How a job ends, if it does."""
    spec, status = item["spec"], item.get("status") or {}
    completions, limit = spec.get("completions"), spec.get("activeDeadlineSeconds")
    if counts.failed > spec.get("backoffLimit", 6):
        reason = "Job has reached the specified backoff limit"
        return ("Failed", "BackoffLimitExceeded", reason)
    begun = status.get("startTime")
    if limit is not None and begun and not spec.get("suspend") and now >= time_of(begun) + limit:
        return ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    if completions is None:
        done = counts.succeeded > 0 and not counts.active
    else:
        done = counts.succeeded >= completions
    if done and not spec.get("suspend"):
        return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def new_status(item: Json, counts: Counts, now: str) -> Json:
    """The status of a job that goes on."""
    old, spec = item.get("status") or {}, item["spec"]
    status: dict[str, Any] = {
        name: old[name] for name in ("startTime", "completionTime") if name in old
    }
    conditions = old.get("conditions") or []
    if spec.get("suspend") or condition_of(old, "Suspended"):
        conditions = with_condition(old, _suspended(suspended=bool(spec.get("suspend"))), now)
    if spec.get("suspend"):
        status.pop("startTime", None)
    elif "completionTime" not in status:
        status.setdefault("startTime", now)
    tallied = without_zeros(
        {"active": len(counts.active), "succeeded": counts.succeeded, "failed": counts.failed}
    )
    status |= {**tallied, "ready": counts.ready, "terminating": counts.terminating}
    if counts.completed:
        status["completedIndexes"] = indexes.written(counts.completed)
    if conditions:
        status["conditions"] = conditions
    status["uncountedTerminatedPods"] = {}
    return status


def finish(item: Json, counts: Counts, told: Outcome, now: str) -> Json:
    """The status of a job that has ended."""
    status = new_status(item, counts, now)
    kind, reason, message = told
    first = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    for each in (first, kind):
        condition = {
            "type": each,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastProbeTime": now,
        }
        status["conditions"] = with_condition(status, condition, now)
    if kind == "Complete":
        status["completionTime"] = now
    return status


def time_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _wanted(spec: Json, succeeded: int, active: int) -> int:
    """As many as may run at once, but no more than there is left to do."""
    parallelism: int = spec["parallelism"]
    completions = spec.get("completions")
    if completions is None:
        # The first success says that there is nothing left to begin.
        return min(active, parallelism) if succeeded else parallelism
    return min(parallelism, max(completions - succeeded, 0))


def _suspended(*, suspended: bool) -> Json:
    return {
        "type": "Suspended",
        "status": "True" if suspended else "False",
        "reason": "JobSuspended" if suspended else "JobResumed",
        "message": "Job suspended" if suspended else "Job resumed",
    }


def _has_failed(pod: PodItem) -> bool:
    """A pod that is being deleted will not succeed any more."""
    return pod.phase == "Failed" or (pod.terminating and pod.phase != "Succeeded")


def _index(pod: PodItem) -> int:
    text = pod.labels.get(INDEX, "")
    return int(text) if text.isdecimal() else -1


def _ended_at(pod: PodItem) -> float:
    return pod.ready_changed or pod.created
