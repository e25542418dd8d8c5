"""What must be written about a pod's claims before it is bound, and whether that is done."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.cluster.devices.claims import Decision, ResourceClaims, extended_uid
from moorage.framework.device_writes import (
    ClaimCreation,
    ClaimGrant,
    DeviceClaimRef,
    DeviceWrites,
)
from moorage.framework.status import Code, Rejected
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.resource_claim import Allocation, ClaimUser, ResourceClaim

from .device_binding import Readiness, find_problem, readiness, waits
from .extended import SpecialClaim
from .references import UnresolvedClaim, find_claims, find_users, is_reserved

#: The name of the plugin that all of this is for.
PLUGIN = "DynamicResources"


def refer_to(claim: ResourceClaim) -> DeviceClaimRef:
    return DeviceClaimRef(claim.namespace, claim.name, claim.uid, claim.resource_version)


def plan_writes(
    pod: Pod,
    claims: ResourceClaims,
    group: PodGroup | None,
    decision: Decision,
    special: SpecialClaim | None,
) -> DeviceWrites | None:
    """Returns what must be written for a pod; None if it can be bound at once."""
    decided = {each.uid: each.allocation for each in decision.claims}
    grants, every = [], []
    slow: list[str] = []
    users = find_users(pod, group)
    for claim in find_claims(pod, claims, group):
        every.append(refer_to(claim))
        allocation = _find_missing(claim, decided.get(claim.uid))
        slow += _list_slow_drivers(allocation or claim.allocation)
        if allocation is not None or not is_reserved(claim, pod, group):
            grants.append(_grant(claim, allocation, users.get(claim.name)))
    creation = None
    made = decided.get(extended_uid(pod.uid))
    if special is not None and made is not None:
        slow += _list_slow_drivers(made)
        creation = ClaimCreation(special.written, made.written(), special.written_mappings)
    if not grants and creation is None and not slow:
        return None
    return DeviceWrites(tuple(grants), creation, tuple(every), tuple(slow), PLUGIN)


def _find_missing(claim: ResourceClaim, decided: Allocation | None) -> Allocation | None:
    """Returns what is decided for a claim, unless it has that. Raises UnresolvedClaim."""
    if decided is None or claim.allocation is None:
        return decided
    if not decided.has_same_devices(claim.allocation):
        raise UnresolvedClaim(f"claim {claim.key} got allocated elsewhere in the meantime")
    return None


def _list_slow_drivers(allocation: Allocation | None) -> list[str]:
    results = () if allocation is None else allocation.results
    return [each.driver for each in results if each.binding_conditions]


def _grant(
    claim: ResourceClaim, allocation: Allocation | None, user: ClaimUser | None
) -> ClaimGrant:
    users: tuple[dict[str, Any], ...] = tuple(map(msgspec.to_builtins, claim.reserved_for))
    written = None if allocation is None else allocation.written()
    by_other = None if user is None else msgspec.to_builtins(user)
    return ClaimGrant(refer_to(claim), written, claim.finalizers, users, by_other)


def is_ready(
    pod: Pod,
    claims: ResourceClaims,
    group: PodGroup | None,
    today: float | None,
    timeout: float,
) -> bool | Rejected:
    """Whether the cluster shows all claims of a pod with ready devices and reserved for it.

    Returns a rejection if that will never be so.
    """
    try:
        every = [*find_claims(pod, claims, group)]
    except UnresolvedClaim as error:
        return _fail(str(error))
    decided = _decided_special(pod, claims)
    if decided is not None:
        made = [
            claim
            for claim in claims.extended_of(pod.uid)
            if decided.has_same_devices(claim.allocation)
        ]
        if not made:
            return False
        every += made
    for claim in every:
        if claim.allocation is None or not is_reserved(claim, pod, group):
            return False
    for claim in every:
        answer = _check(claim, today, timeout)
        if answer is not True:
            return answer
    return True


def _decided_special(pod: Pod, claims: ResourceClaims) -> Allocation | None:
    """Returns what was decided for the pod's special claim; None if it gets none."""
    decision = claims.decision(pod.uid)
    for each in () if decision is None else decision.claims:
        if each.uid == extended_uid(pod.uid):
            return each.allocation
    return None


def _check(claim: ResourceClaim, today: float | None, timeout: float) -> bool | Rejected:
    if not waits(claim):
        return True
    problem = find_problem(claim)
    if problem is not None:
        return _fail(
            f"device binding failed: claim={claim.name}, reason={problem.reason}, "
            f'message="{problem.message}"'
        )
    found = readiness(claim, today, timeout)
    if found is Readiness.LATE:
        return _fail(f"device binding timeout: claim={claim.name}")
    return found is Readiness.READY


def _fail(why: str) -> Rejected:
    return Rejected(Code.ERROR, (f'running PreBind plugin "{PLUGIN}": {why}',))
