"""How far a job has come: its pods, counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mooring.embedded.wire import Json

from . import indexes
from .items import PodItem
from .job_failures import Failure, Judge, index_of
from .ranking import restarts_of


@dataclass(slots=True)
class Tally:
    """What is remembered of the pods of a job, above all of those that are gone."""

    judge: Judge
    succeeded: int = 0
    failed: int = 0
    #: Why the job has failed with one of its pods.
    ends_job: str = ""
    failed_indexes: set[int] = field(default_factory=set)
    #: How often each index has failed, and when it did last.
    index_failures: dict[int, tuple[int, float]] = field(default_factory=dict)
    _spared: set[str] = field(default_factory=set)
    _verdicts: dict[str, Failure] = field(default_factory=dict)

    @classmethod
    def since(cls, item: Json, pods: list[PodItem]) -> Tally:
        """What a status counts beyond the pods that are still there."""
        judge, status = Judge.of(item["spec"]), item.get("status") or {}
        tally = cls(judge, failed_indexes=indexes.read(status.get("failedIndexes", "")))
        succeeded = sum(pod.phase == "Succeeded" for pod in pods)
        failed = sum(judge.has_failed(pod) and tally.take(pod).counts for pod in pods)
        tally.succeeded = max(status.get("succeeded", 0) - succeeded, 0)
        tally.failed = max(status.get("failed", 0) - failed, 0)
        return tally

    def spare(self, pods: Iterable[PodItem]) -> None:
        """These are removed on purpose."""
        self._spared.update(pod.uid for pod in pods)

    def is_spared(self, pod: PodItem) -> bool:
        return pod.uid in self._spared

    def take(self, pod: PodItem) -> Failure:
        """What the failure of a pod means; it is looked at once."""
        known = self._verdicts.get(pod.uid)
        # A pod that is stopping has not said yet with what it ends.
        if known is not None and not pod.is_stopping:
            return known
        verdict = self._verdicts[pod.uid] = self.judge.verdict(pod)
        self.ends_job = self.ends_job or verdict.ends_job
        index = index_of(pod)
        if verdict.ends_index:
            self.failed_indexes.add(index)
        if self.judge.limit_per_index is not None:
            times, last = self.index_failures.get(index, (0, 0.0))
            self.index_failures[index] = max(times, verdict.times), max(last, ended_at(pod))
        return verdict

    def count_gone(self, pod: PodItem) -> None:
        """A pod is gone, and counted for good."""
        if pod.phase == "Succeeded":
            self.succeeded += 1
        elif pod.uid not in self._spared and self.take(pod).counts:
            self.failed += 1
        self._spared.discard(pod.uid)
        self._verdicts.pop(pod.uid, None)


@dataclass(frozen=True, slots=True)
class Counts:
    """The pods of a job, counted."""

    active: list[PodItem]
    succeeded: int
    failed: int
    ready: int
    terminating: int
    #: How many more pods there should be now; fewer, if negative.
    missing: int
    #: The indexes that are done; None for jobs without indexes.
    completed: set[int] | None
    #: The indexes that need a pod, in order.
    open_indexes: list[int]
    #: Failures since the last success, and when the last of them was.
    failed_lately: int
    last_failure: float
    #: How often containers were restarted, in pods that do that after a failure.
    restarts: int

    @classmethod
    def of(cls, item: Json, pods: list[PodItem], tally: Tally) -> Counts:
        spec, status = item["spec"], item.get("status") or {}
        active = [pod for pod in pods if pod.active]
        done = [pod for pod in pods if pod.phase == "Succeeded"]
        failed = [pod for pod in pods if tally.judge.has_failed(pod) and not tally.is_spared(pod)]
        # Each is looked at, whatever it counts: it may end the job or its index.
        counted = [pod for pod in failed if tally.take(pod).counts]
        stopping = [pod for pod in pods if pod.is_stopping]
        waited_for = stopping if tally.judge.patient else []
        succeeded, completed, open_indexes = tally.succeeded + len(done), None, []
        if spec["completionMode"] == "Indexed":
            everyone = range(spec["completions"])
            completed = indexes.read(status.get("completedIndexes", ""))
            completed = (completed | {index_of(pod) for pod in done}) & set(everyone)
            taken = completed | {index_of(pod) for pod in (*active, *waited_for)}
            taken |= tally.failed_indexes
            open_indexes = [index for index in everyone if index not in taken]
            succeeded = len(completed)
        since = max((ended_at(pod) for pod in done), default=0.0)
        late = [pod for pod in failed if ended_at(pod) >= since and pod.phase == "Failed"]
        return cls(
            active=active,
            succeeded=succeeded,
            failed=tally.failed + len(counted),
            ready=sum(pod.ready for pod in active),
            terminating=len(stopping),
            missing=_missing(spec, succeeded, len(active), len(waited_for)),
            completed=completed,
            open_indexes=open_indexes,
            failed_lately=len(late),
            last_failure=max((ended_at(pod) for pod in late), default=0.0),
            restarts=sum(map(restarts_of, active)) if _restarts(spec) else 0,
        )


def ended_at(pod: PodItem) -> float:
    return pod.ready_changed or pod.created


def _restarts(spec: Json) -> bool:
    return bool(spec["template"]["spec"].get("restartPolicy") == "OnFailure")


def _missing(spec: Json, succeeded: int, active: int, waited_for: int) -> int:
    """As many as may run at once are wanted, but no more than there is left to do."""
    parallelism: int = spec["parallelism"]
    completions = spec.get("completions")
    if spec.get("suspend"):
        return -active
    if completions is not None:
        wanted = min(parallelism, max(completions - succeeded, 0))
    else:
        # The first success says that there is nothing left to begin.
        wanted = active if succeeded else parallelism
    surplus = active - wanted
    return -surplus if surplus > 0 else max(wanted - active - waited_for, 0)
