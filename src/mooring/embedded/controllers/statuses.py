"""What the statuses of several kinds have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mooring.embedded.store.table import Json

from .items import PodItem

# Times are whole seconds, so that this is at least one of them.
_PAUSE_SECONDS = 2.0


def without_zeros(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts as the API writes them: a zero is left out."""
    return {name: count for name, count in counts.items() if count}


def next_availability(pods: Iterable[PodItem], now: float, least_ready: int) -> float | None:
    """How long until the next ready pod has been ready for long enough."""
    if not least_ready:
        return None
    waits = [pod.ready_changed + least_ready - now for pod in pods if pod.ready]
    return min((wait for wait in waits if wait > 0), default=None)


def pause_after_failures(pods: Iterable[PodItem], now: float) -> float:
    """How long to wait before pods are replaced that failed as soon as they came.

    The next ones would, too, without end: a node that rejects one rejects them all.
    """
    failed = (pod.created for pod in pods if pod.phase == "Failed" and not pod.terminating)
    return max(max(failed, default=0.0) + _PAUSE_SECONDS - now, 0.0)


def soonest(*waits: float | None) -> float | None:
    """The shortest of several waits; None stands for none at all."""
    return min((wait for wait in waits if wait is not None), default=None)


def share(value: int | str | None, whole: int, *, up: bool) -> int:
    """A number, or a percentage of a whole."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-percent * whole // 100) if up else percent * whole // 100


def condition_of(status: Json, kind: str) -> Json:
    """A condition, empty if there is none of the type."""
    found = (each for each in status.get("conditions") or () if each.get("type") == kind)
    return next(found, {})


def without_condition(status: Json, kind: str) -> list[Json]:
    return [each for each in status.get("conditions") or () if each.get("type") != kind]


def with_condition(status: Json, condition: Json, now: str) -> list[Json]:
    """The conditions with one replaced; its time moves only when its status does."""
    old = condition_of(status, condition["type"])
    since = old["lastTransitionTime"] if old.get("status") == condition["status"] else now
    new = {**condition, "lastTransitionTime": since}
    conditions = status.get("conditions") or []
    if not old:
        return [*conditions, new]
    return [new if each is old else each for each in conditions]
