"""Conditions that drivers set on devices before a pod may be bound."""

from __future__ import annotations

from enum import Enum, auto

import msgspec

from moorage.objects.meta import Condition
from moorage.objects.resource_claim import DeviceResult, DeviceStatus, ResourceClaim


class Readiness(Enum):
    """Whether the devices of a claim are ready."""

    READY = auto()
    WAITING = auto()
    #: They were not ready in time.
    LATE = auto()
    FAILED = auto()


class BindingProblem(msgspec.Struct, frozen=True):
    """The condition by which a driver says that a device cannot be used."""

    reason: str
    message: str


def readiness(claim: ResourceClaim, today: float | None, timeout: float) -> Readiness:
    """Returns whether the devices of a claim are ready for a pod."""
    if not waits(claim):
        return Readiness.READY
    if find_problem(claim) is not None:
        return Readiness.FAILED
    if all(_is_ready(claim, each) for each in _waited_for(claim)):
        return Readiness.READY
    since = None if claim.allocation is None else claim.allocation.allocated_at
    if since is not None and today is not None and since + timeout < today:
        return Readiness.LATE
    return Readiness.WAITING


def find_problem(claim: ResourceClaim) -> BindingProblem | None:
    """Returns why a device of the claim will never be ready; None if no driver says so."""
    for result in _waited_for(claim):
        status = _status(claim, result)
        for name in result.binding_failure_conditions or ():
            found = _find(status, name)
            if found is not None and found.status == "True":
                return BindingProblem(found.reason or "", found.message or "")
    return None


def _waited_for(claim: ResourceClaim) -> list[DeviceResult]:
    results = claim.allocation.results if claim.allocation else ()
    return [each for each in results if each.binding_conditions]


def waits(claim: ResourceClaim) -> bool:
    """Whether a device of the claim has conditions to wait for."""
    for each in claim.allocation.results if claim.allocation else ():
        if each.binding_conditions:
            return True
    return False


def _is_ready(claim: ResourceClaim, result: DeviceResult) -> bool:
    status = _status(claim, result)
    found = [_find(status, name) for name in result.binding_conditions or ()]
    return status is not None and all(each is not None and each.status == "True" for each in found)


def _status(claim: ResourceClaim, result: DeviceResult) -> DeviceStatus | None:
    wanted = result.driver, result.pool, result.device
    for each in claim.devices:
        if (each.driver, each.pool, each.device) == wanted:
            return each
    return None


def _find(status: DeviceStatus | None, name: str) -> Condition | None:
    conditions = (status.conditions if status else None) or ()
    return next((each for each in conditions if each.type == name), None)
