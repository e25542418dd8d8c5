"""How far a job has come: its pods counted, and what the failure of one means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from moorage.embedded.store.object_store import Json

from .items import PodItem
from .replica_sets import restarts_of


def format_indexes(indexes: Iterable[int]) -> str:
    """Formats indexes as a job's status does: 0,3-5,7."""
    runs: list[list[int]] = []
    for index in sorted(set(indexes)):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs
    )


def read_indexes(text: str) -> set[int]:
    """Reads indexes such as 0,3-5,7; parts that cannot be read are left out."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), int(last or first) + 1))
    return found


INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"

# Others take a longer number for none.
_LONGEST_NUMBER = 9


@dataclass(frozen=True, slots=True)
class PodFailure:
    """What the failure of a pod means for its job."""

    #: Whether it counts towards the limit.
    counts: bool = True
    #: Why the whole job has failed with it, if it has.
    ends_job: str = ""
    ends_index: bool = False
    #: How often its index has failed by now.
    times: int = 1


_PLAIN = PodFailure()


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """How a job treats failures of its pods."""

    rules: tuple[Json, ...]
    #: How often an index may fail; None if indexes are not looked at by themselves.
    limit_per_index: int | None
    #: Whether pods that are being deleted count, and are replaced, only once they have ended.
    patient: bool

    @classmethod
    def of(cls, spec: Json) -> FailurePolicy:
        policy = spec.get("podFailurePolicy") or {}
        return cls(
            rules=tuple(policy.get("rules") or ()),
            limit_per_index=spec.get("backoffLimitPerIndex"),
            patient=spec.get("podReplacementPolicy") == "Failed" or bool(policy),
        )

    def has_failed(self, pod: PodItem) -> bool:
        """Whether a pod has failed; one that is being deleted may count as failed."""
        return pod.phase == "Failed" or (pod.is_stopping and not self.patient)

    def verdict(self, pod: PodItem) -> PodFailure:
        """Decides what the failure of a pod means."""
        if not self.rules and self.limit_per_index is None:
            return _PLAIN
        item = pod.entry.object
        action, why = self._action(item)
        counts = action != "Ignore"
        notes = item["metadata"].get("annotations") or {}
        times = _number(notes.get(INDEX_FAILURES, "")) + counts
        limit = self.limit_per_index
        exceeded = counts and limit is not None and times > limit
        return PodFailure(
            counts=counts,
            ends_job=why if action == "FailJob" else "",
            ends_index=limit is not None and (exceeded or action == "FailIndex"),
            times=times,
        )

    def _action(self, pod: Json) -> tuple[str, str]:
        """Returns the action of the first rule that matches a pod, and why."""
        for at, rule in enumerate(self.rules):
            why = _match_text(pod, rule)
            if why:
                return rule["action"], f"{why} matching {rule['action']} rule at index {at}"
        return "Count", ""


def index_of(pod: PodItem) -> int:
    """Returns the completion index of a pod; -1 if it has none."""
    text = pod.labels.get(INDEX, "")
    return int(text) if text.isascii() and text.isdecimal() else -1


def _match_text(pod: Json, rule: Json) -> str:
    """Returns a text on what of a pod matches a rule; empty if nothing does."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    named = f"{metadata['namespace']}/{metadata['name']}"
    codes = rule.get("onExitCodes")
    if codes is None:
        for each in status.get("conditions") or ():
            for pattern in rule.get("onPodConditions") or ():
                wanted = (pattern["type"], pattern.get("status", "True"))
                if (each["type"], each["status"]) == wanted:
                    return f"Pod {named} has condition {each['type']}"
        return ""
    for container, code in _exits(status):
        if codes.get("containerName") in (None, container):
            listed = code in (codes.get("values") or ())
            if code and listed is (codes["operator"] == "In"):
                return f"Container {container} for pod {named} failed with exit code {code}"
    return ""


def _exits(status: Json) -> Iterator[tuple[str, int]]:
    """Yields the containers that have ended, and their exit codes."""
    for name in ("containerStatuses", "initContainerStatuses"):
        for each in status.get(name) or ():
            ended: dict[str, Any] | None = (each.get("state") or {}).get("terminated")
            if ended is not None:
                yield each["name"], ended.get("exitCode", 0)


def _number(text: str) -> int:
    fits = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    return int(text) if fits else 0


@dataclass(slots=True)
class JobTally:
    """The counts of a job that its present pods do not show: pods that are gone, failures."""

    judge: FailurePolicy
    succeeded: int = 0
    failed: int = 0
    #: Why the job has failed with one of its pods.
    ends_job: str = ""
    failed_indexes: set[int] = field(default_factory=set)
    #: How often each index has failed, and when it did last.
    index_failures: dict[int, tuple[int, float]] = field(default_factory=dict)
    _removed: set[str] = field(default_factory=set)
    _verdicts: dict[str, PodFailure] = field(default_factory=dict)

    @classmethod
    def since(cls, item: Json, pods: list[PodItem]) -> JobTally:
        """Makes the tally of a job from its status and its present pods."""
        judge, status = FailurePolicy.of(item["spec"]), item.get("status") or {}
        tally = cls(judge, failed_indexes=read_indexes(status.get("failedIndexes", "")))
        succeeded = sum(pod.phase == "Succeeded" for pod in pods)
        failed = sum(judge.has_failed(pod) and tally.take(pod).counts for pod in pods)
        tally.succeeded = max(status.get("succeeded", 0) - succeeded, 0)
        tally.failed = max(status.get("failed", 0) - failed, 0)
        return tally

    def note_removed(self, pods: Iterable[PodItem]) -> None:
        """Notes pods that the job itself removes, so that they do not count as failed."""
        self._removed.update(pod.uid for pod in pods)

    def is_removed_by_job(self, pod: PodItem) -> bool:
        return pod.uid in self._removed

    def take(self, pod: PodItem) -> PodFailure:
        """Returns what the failure of a pod means; decided once per pod."""
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
        """Counts a pod that is gone."""
        if pod.phase == "Succeeded":
            self.succeeded += 1
        elif pod.uid not in self._removed and self.take(pod).counts:
            self.failed += 1
        self._removed.discard(pod.uid)
        self._verdicts.pop(pod.uid, None)


@dataclass(frozen=True, slots=True)
class JobCounts:
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
    def of(cls, item: Json, pods: list[PodItem], tally: JobTally) -> JobCounts:
        spec, status = item["spec"], item.get("status") or {}
        active = [pod for pod in pods if pod.active]
        done = [pod for pod in pods if pod.phase == "Succeeded"]
        failed = [
            pod for pod in pods if tally.judge.has_failed(pod) and not tally.is_removed_by_job(pod)
        ]
        # Each is looked at, whatever it counts: it may end the job or its index.
        counted = [pod for pod in failed if tally.take(pod).counts]
        stopping = [pod for pod in pods if pod.is_stopping]
        waited_for = stopping if tally.judge.patient else []
        succeeded, completed, open_indexes = tally.succeeded + len(done), None, []
        if spec["completionMode"] == "Indexed":
            everyone = range(spec["completions"])
            completed = read_indexes(status.get("completedIndexes", ""))
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
            missing=_count_missing(spec, succeeded, len(active), len(waited_for)),
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


def _count_missing(spec: Json, succeeded: int, active: int, waited_for: int) -> int:
    """Returns how many more pods should run now; negative if there are too many."""
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
