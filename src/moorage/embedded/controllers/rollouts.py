"""Rollouts of deployments: how large the set of each version may be now, and the status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from moorage.embedded.api.decoding import now_text
from moorage.embedded.api.metadata import condition_of, with_condition, without_condition
from moorage.embedded.controllers.items import without_zeros
from moorage.embedded.store.object_store import Json

from .replica_sets import FAILURE


@dataclass(frozen=True, slots=True)
class SetVersion:
    """The set of pods of one version."""

    name: str
    size: int
    available: int
    #: How many pods all versions together might have had when the size was set; 0 if unknown.
    most: int = 0


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """The size of a deployment, and by how much a rollout may exceed or miss it."""

    size: int
    surge: int
    unavailable: int
    recreates: bool = False

    @classmethod
    def of(cls, spec: Json) -> RolloutPlan:
        size, strategy = spec["replicas"], spec["strategy"]
        if strategy["type"] == "Recreate":
            return cls(size, 0, size, recreates=True)
        rolling = strategy.get("rollingUpdate") or {}
        surge = share(rolling.get("maxSurge"), size, up=True)
        unavailable = share(rolling.get("maxUnavailable"), size, up=False)
        if not surge and not unavailable:
            # Percentages of little can both come out as nothing, and then nothing could move.
            unavailable = 1
        return cls(size, surge, min(unavailable, size))

    @property
    def most(self) -> int:
        """How many pods there may be for a while."""
        return self.size + self.surge if self.size else 0


#: The sizes that sets get, by name.
Sizes = dict[str, int]


def recreate(
    plan: RolloutPlan, new: SetVersion, old: Iterable[SetVersion], *, going: bool
) -> Sizes:
    """Returns sizes by which all old pods go before the first new one comes."""
    sizes = {each.name: 0 for each in old}
    return sizes if going else {**sizes, new.name: plan.size}


def roll(plan: RolloutPlan, new: SetVersion, old: list[SetVersion]) -> Sizes:
    """Returns the next sizes of a rolling update, within surge and unavailability."""
    before = sum(each.size for each in old)
    if new.size >= plan.size:
        grown = plan.size
    else:
        room = plan.size + plan.surge - before - new.size
        grown = min(new.size + max(room, 0), plan.size)
    return {new.name: grown, **_shrunk(plan, new, grown, old)}


def _shrunk(plan: RolloutPlan, new: SetVersion, grown: int, old: list[SetVersion]) -> Sizes:
    least_available = plan.size - plan.unavailable
    total = grown + sum(each.size for each in old)
    new_unavailable = max(grown - new.available, 0)
    spare = total - least_available - new_unavailable
    sizes = {each.name: each.size for each in old}
    # Pods that do nothing go first: that costs no availability.
    for each in old:
        idle = min(max(each.size - each.available, 0), max(spare, 0))
        sizes[each.name] -= idle
        spare -= idle
    available = new.available + sum(min(each.available, each.size) for each in old)
    spare = available - least_available
    for each in old:
        cut = min(sizes[each.name], max(spare, 0))
        sizes[each.name] -= cut
        spare -= cut
    return sizes


def rescale(
    plan: RolloutPlan, new: SetVersion | None, old: Sequence[SetVersion], counted: int
) -> Sizes:
    """Returns the sizes of sets after the deployment's size changed; versions are in order of age.

    `counted` is how many pods the status of the deployment counts; versions without a noted size
    use it.
    """
    versions = [*old, new] if new is not None else list(old)
    active = [each for each in versions if each.size]
    if len(active) <= 1:
        return {each.name: plan.size for each in active or versions[-1:]}
    if new is not None and new.size == plan.size == new.available:
        return {each.name: 0 for each in old}
    return _in_proportion(plan, active, counted)


def _in_proportion(plan: RolloutPlan, active: list[SetVersion], counted: int) -> Sizes:
    """Distributes a change of size over the versions, the largest first."""
    wanted = plan.most - sum(each.size for each in active)
    # Of two of a size the newer one grows first, and the older one shrinks first.
    by_age = list(reversed(active)) if wanted > 0 else active
    in_turn = sorted(by_age, key=lambda each: -each.size)
    sizes, left = {}, wanted
    for each in in_turn:
        change = _share(plan, each, counted)
        change = min(change, left) if wanted > 0 else max(change, left)
        change = change if wanted else 0
        sizes[each.name] = each.size + change
        left -= change
    largest = in_turn[0].name
    sizes[largest] = max(sizes[largest] + left, 0)
    return sizes


def _share(plan: RolloutPlan, version: SetVersion, counted: int) -> int:
    """Returns by how much a version changes to keep its share."""
    if not plan.size:
        return -version.size
    before = version.most or counted
    if not before:
        return 0
    # Halves are rounded up.
    return (2 * version.size * plan.most + before) // (2 * before) - version.size


def share(value: int | str | None, whole: int, *, up: bool) -> int:
    """Returns a number, or a percentage of a whole."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-percent * whole // 100) if up else percent * whole // 100


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
