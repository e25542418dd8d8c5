"""The status of a deployment: counts, conditions and the progress deadline."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mooring.embedded.api.decoding import now_text
from mooring.embedded.api.metadata import condition_of, with_condition, without_condition
from mooring.embedded.controllers.items import without_zeros
from mooring.embedded.store.table import Json

from .replica_sets import FAILURE
from .rollouts import RolloutPlan

_TIMED_OUT = "ProgressDeadlineExceeded"
_DONE = "NewReplicaSetAvailable"
_PAUSED = "DeploymentPaused"
# Go's largest number of 32 bits stands for no deadline.
_NO_DEADLINE = 2**31 - 1


def deployment_status(item: Json, new: Json | None, sets: list[Json], now: datetime) -> Json:
    """Returns the status of a deployment, from the statuses of its sets."""
    old, spec = item.get("status") or {}, item["spec"]
    available = _sum(sets, "availableReplicas")
    replicas = _sum(sets, "replicas")
    counts = {
        "replicas": replicas,
        "updatedReplicas": _sum([new] if new else [], "replicas"),
        "readyReplicas": _sum(sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(each["spec"]["replicas"] for each in sets) - available, 0),
    }
    status: dict[str, Any] = {
        "observedGeneration": item["metadata"].get("generation", 0),
        **without_zeros(counts),
        "terminatingReplicas": _sum(sets, "terminatingReplicas"),
    }
    if "collisionCount" in old:
        status["collisionCount"] = old["collisionCount"]
    conditions = _with_availability(old, RolloutPlan.of(spec), available, now_text(now))
    conditions = _with_progress({**status, "conditions": conditions}, item, new, now)
    status["conditions"] = _with_failure({"conditions": conditions}, sets, now_text(now))
    return status


def is_complete(spec: Json, status: Json) -> bool:
    """Whether there are only pods of the present version, and all of them."""
    wanted = spec["replicas"]
    names = ("updatedReplicas", "replicas", "availableReplicas")
    return all(status.get(name, 0) == wanted for name in names)


def seconds_to_deadline(spec: Json, status: Json, now: datetime) -> float | None:
    """Returns the seconds until a rollout without progress counts as failed."""
    deadline = spec.get("progressDeadlineSeconds", _NO_DEADLINE)
    progress = condition_of(status, "Progressing")
    settled = progress.get("reason") in (_DONE, _TIMED_OUT)
    if not progress or settled or deadline == _NO_DEADLINE or spec.get("paused"):
        return None
    return max(deadline - _age(progress, now), 1.0)


def _with_availability(old: Json, plan: RolloutPlan, available: int, now: str) -> list[Json]:
    enough = available >= plan.size - plan.unavailable
    condition = {
        "type": "Available",
        "status": "True" if enough else "False",
        "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        "message": f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        "lastUpdateTime": now,
    }
    before = condition_of(old, "Available")
    if before.get("status") == condition["status"]:
        condition["lastUpdateTime"] = before["lastUpdateTime"]
    return with_condition(old, condition, now)


def _with_progress(status: Json, item: Json, new: Json | None, now: datetime) -> list[Json]:
    """Sets the condition Progressing; its update time moves with every step."""
    before = condition_of(item.get("status") or {}, "Progressing")
    found = _progress(status, item, new, now)
    if found is None:
        conditions: list[Json] = status["conditions"]
        return conditions
    condition = dict(zip(("status", "reason", "message"), found, strict=True))
    same = all(before.get(name) == value for name, value in condition.items())
    lasting = same and condition["reason"] != "ReplicaSetUpdated"
    updated = before["lastUpdateTime"] if lasting else now_text(now)
    whole = {"type": "Progressing", **condition, "lastUpdateTime": updated}
    return with_condition(status, whole, now_text(now))


def _progress(
    status: Json, item: Json, new: Json | None, now: datetime
) -> tuple[str, str, str] | None:
    """Returns status, reason and message of Progressing; None if it does not change."""
    spec, old = item["spec"], item.get("status") or {}
    before = condition_of(old, "Progressing")
    named = new["metadata"]["name"] if new else ""
    if spec.get("paused"):
        is_known = before.get("reason") in (_PAUSED, _TIMED_OUT)
        return None if is_known else ("Unknown", _PAUSED, "Deployment is paused")
    if is_complete(spec, status) and new is not None:
        return "True", _DONE, f'ReplicaSet "{named}" has successfully progressed.'
    if before.get("reason") == _PAUSED:
        return "Unknown", "DeploymentResumed", "Deployment is resumed"
    if not before or _has_advanced(old, status):
        return "True", "ReplicaSetUpdated", f'ReplicaSet "{named}" is progressing.'
    if _is_overdue(spec, before, now):
        return "False", _TIMED_OUT, f'ReplicaSet "{named}" has timed out progressing.'
    return None


def _with_failure(status: Json, sets: list[Json], now: str) -> list[Json]:
    """Sets the condition ReplicaFailure from the sets, the present version first."""
    found = [condition_of(each.get("status") or {}, FAILURE) for each in reversed(sets)]
    failure = next((each for each in found if each), None)
    if failure is None:
        return without_condition(status, FAILURE)
    condition = {**failure, "lastUpdateTime": failure["lastTransitionTime"]}
    return with_condition(status, condition, now)


def _has_advanced(old: Json, status: Json) -> bool:
    """Whether a rollout has advanced: more new pods, fewer old ones, or more ready ones."""
    gone_before = old.get("replicas", 0) - old.get("updatedReplicas", 0)
    gone_now = status.get("replicas", 0) - status.get("updatedReplicas", 0)
    names = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return gone_now < gone_before or any(status.get(n, 0) > old.get(n, 0) for n in names)


def _is_overdue(spec: Json, progress: Json, now: datetime) -> bool:
    if progress.get("reason") == _DONE:
        return False
    deadline: int = spec.get("progressDeadlineSeconds", _NO_DEADLINE)
    return deadline != _NO_DEADLINE and _age(progress, now) >= deadline


def _age(condition: Json, now: datetime) -> float:
    return (now - datetime.fromisoformat(condition["lastUpdateTime"])).total_seconds()


def _sum(sets: list[Json], name: str) -> int:
    return sum((each.get("status") or {}).get(name, 0) for each in sets)
