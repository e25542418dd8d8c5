"""How a job ends, and the status of a job."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from moorage.embedded.api.metadata import condition_of, with_condition
from moorage.embedded.controllers.items import without_zeros
from moorage.embedded.store.object_store import Json

from .job_counts import JobCounts, JobTally, format_indexes, read_indexes

#: The condition that ends a job, its reason and its message.
Outcome = tuple[str, str, str]

# First it is said how a job will end, and that it has once its pods are gone.
_BEFORE = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}


def outcome(item: Json, counts: JobCounts, tally: JobTally, now: float) -> Outcome | None:
    """Returns how a job ends; None if it goes on. An outcome in the status stays."""
    status = item.get("status") or {}
    for kind, first in _BEFORE.items():
        known = condition_of(status, first)
        if known.get("status") == "True":
            return (kind, known["reason"], known["message"])
    return _failure(item, counts, tally, now) or _success(item["spec"], counts)


def _failure(item: Json, counts: JobCounts, tally: JobTally, now: float) -> Outcome | None:
    spec, begun = item["spec"], (item.get("status") or {}).get("startTime")
    limit, backoff_limit = spec.get("activeDeadlineSeconds"), spec.get("backoffLimit", 6)
    if tally.ends_job:
        return ("Failed", "PodFailurePolicy", tally.ends_job)
    if counts.failed > backoff_limit or counts.restarts >= max(backoff_limit, 1):
        reason = "Job has reached the specified backoff limit"
        return ("Failed", "BackoffLimitExceeded", reason)
    if limit is not None and begun and not spec.get("suspend") and now >= time_of(begun) + limit:
        return ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    return _failure_of_indexes(spec, counts, tally)


def _failure_of_indexes(spec: Json, counts: JobCounts, tally: JobTally) -> Outcome | None:
    failed, most = len(tally.failed_indexes), spec.get("maxFailedIndexes")
    if not failed or counts.completed is None:
        return None
    if most is not None and failed > most:
        reason = "Job has exceeded the specified maximal number of failed indexes"
        return ("Failed", "MaxFailedIndexesExceeded", reason)
    if failed + len(counts.completed) >= spec["completions"]:
        return ("Failed", "FailedIndexes", "Job has failed indexes")
    return None


def _success(spec: Json, counts: JobCounts) -> Outcome | None:
    completions = spec.get("completions")
    rules = (spec.get("successPolicy") or {}).get("rules") or ()
    for at, rule in enumerate(rules):
        if counts.completed and _is_met(rule, counts.completed, completions or 0):
            return ("Complete", "SuccessPolicy", f"Matched rules at index {at}")
    if completions is None:
        done = counts.succeeded > 0 and not counts.active
    else:
        done = counts.succeeded >= completions and not counts.active
    if done and not spec.get("suspend"):
        return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def _is_met(rule: Json, completed: set[int], completions: int) -> bool:
    """Whether enough indexes of a success rule are completed."""
    enough, named = rule.get("succeededCount"), rule.get("succeededIndexes")
    if named is None:
        return enough is not None and len(completed) >= enough
    wanted = read_indexes(named) & set(range(completions))
    done = len(wanted & completed)
    return bool(wanted) and (done == len(wanted) or (enough is not None and done >= enough))


def job_status(item: Json, counts: JobCounts, tally: JobTally, now: str) -> Json:
    """Returns the status of a job that goes on."""
    old, spec = item.get("status") or {}, item["spec"]
    status: dict[str, Any] = {
        name: old[name] for name in ("startTime", "completionTime") if name in old
    }
    conditions, known = old.get("conditions") or [], condition_of(old, "Suspended")
    result = _suspension(now, suspended=bool(spec.get("suspend")))
    if known.get("status", "False") != result["status"]:
        conditions = with_condition(old, result, now)
    if spec.get("suspend"):
        status.pop("startTime", None)
    elif "completionTime" not in status:
        status.setdefault("startTime", now)
    tallied = without_zeros(
        {"active": len(counts.active), "succeeded": counts.succeeded, "failed": counts.failed}
    )
    status |= {**tallied, "ready": counts.ready, "terminating": counts.terminating}
    if counts.completed:
        status["completedIndexes"] = format_indexes(counts.completed)
    if tally.judge.limit_per_index is not None:
        status["failedIndexes"] = format_indexes(tally.failed_indexes)
    if conditions:
        status["conditions"] = conditions
    status["uncountedTerminatedPods"] = {}
    return status


def finish(status: Json, result: Outcome, now: str) -> Json:
    """Adds the outcome to a status; the final condition comes when no pod is left."""
    kind, reason, message = result
    left = status.get("active", 0) or status["terminating"]
    for each in (_BEFORE[kind],) if left else (_BEFORE[kind], kind):
        condition = {
            "type": each,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastProbeTime": now,
        }
        if not condition_of(status, each):
            status["conditions"] = with_condition(status, condition, now)
    if kind == "Complete" and not left:
        status["completionTime"] = now
    return status


def find_ending(item: Json) -> Json | None:
    """Returns the condition that says that a job has ended; None if it has not."""
    status = item.get("status") or {}
    found = (condition_of(status, kind) for kind in _BEFORE)
    return next((each for each in found if each.get("status") == "True"), None)


def time_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _suspension(now: str, *, suspended: bool) -> Json:
    return {
        "type": "Suspended",
        "status": "True" if suspended else "False",
        "reason": "JobSuspended" if suspended else "JobResumed",
        "message": "Job suspended" if suspended else "Job resumed",
        "lastProbeTime": now,
    }
