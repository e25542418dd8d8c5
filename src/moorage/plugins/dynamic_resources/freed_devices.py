"""Devices that evicting pods would free. Preemption uses them if the plugin's arguments say so.

The claims of evicted pods release their devices once the pods are gone. A claim that another pod
also uses keeps its devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Rows, View
from moorage.objects.node_selector import NAME_FIELD
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import ClaimSpec, DeviceResult, ResourceClaim

from .device_allocation import AllocationFound, ClaimsPlan
from .extended import SPECIAL_NAME, find_extended
from .preparation import PreparedClaims

#: The claims of pods that would be gone, by the uid of the pod.
GoneClaims = Mapping[str, tuple[ResourceClaim, ...]]


def without_pod(prepared: PreparedClaims, nodes: View, pod: Pod) -> PreparedClaims:
    """Returns the prepared claims as if a pod were gone."""
    if pod.uid in prepared.ahead:
        left = {uid: claims for uid, claims in prepared.ahead.items() if uid != pod.uid}
        return replace(prepared, ahead=left)
    claims = tuple(each for each in nodes.devices.claims.used_by(pod) if each.allocation)
    if not claims or not prepared.frees_devices:
        return prepared
    return replace(prepared, gone={**prepared.gone, pod.uid: claims})


def with_pod(prepared: PreparedClaims, nodes: View, pod: Pod, row: int) -> PreparedClaims:
    """Returns the prepared claims as if a pod that would be gone stayed, or another pod came.

    The other pod is nominated to the row.
    """
    if pod.uid in prepared.gone:
        left = {uid: claims for uid, claims in prepared.gone.items() if uid != pod.uid}
        return replace(prepared, gone=left)
    if not prepared.frees_devices or prepared.plans is None:
        return prepared
    # A claim that both pods use gets its devices once. If it was prepared for the nominated pod
    # itself, it serves another pod of the class, whose claims are its own.
    own = {claim.key for claim in prepared.claims if prepared.pod.uid != pod.uid}
    wanted = tuple(each for each in _wanted_by(pod, nodes, row) if each[0] not in own)
    if not wanted:
        return prepared
    return replace(prepared, ahead={**prepared.ahead, pod.uid: wanted})


def after_nominated(prepared: PreparedClaims, nodes: View, row: int) -> PreparedClaims:
    """Returns the prepared claims, with the claims of pods nominated to the row before them.

    Only nominated pods of equal or higher priority count.
    """
    pod = prepared.pod
    for other in nodes.nominations.on(nodes.name(row)).values():
        if other.priority >= pod.priority and other.uid != pod.uid:
            prepared = with_pod(prepared, nodes, other, row)
    return prepared


def _wanted_by(pod: Pod, nodes: View, row: int) -> Iterator[tuple[str, ClaimSpec]]:
    """Yields the claims of a pod that have no devices yet: their keys, and what they ask for."""
    for claim in nodes.devices.claims.used_by(pod):
        if claim.allocation is None and not claim.is_extended and _has_classes(claim, nodes):
            yield claim.key, claim.spec
    extended = find_extended(pod, nodes)
    special = None if extended is None else extended.special_on(nodes, row)
    if special is not None:
        yield f"{pod.namespace}/{SPECIAL_NAME}", special.spec


def _has_classes(claim: ResourceClaim, nodes: View) -> bool:
    """Whether all classes of a claim exist. A claim without them must not make others fail."""
    known = nodes.devices.classes
    return all(
        ask is None or known.get(ask.device_class_name) is not None
        for request in claim.spec.requests
        for ask in (request.exactly, *(request.first_available or ()))
    )


def freed_results(gone: GoneClaims) -> Iterator[DeviceResult]:
    """Yields the devices of claims that no pod would use any more."""
    claims = {claim.uid: claim for each in gone.values() for claim in each}
    for claim in claims.values():
        if claim.allocation is not None and all(user.uid in gone for user in claim.reserved_for):
            yield from claim.allocation.results


class FreedOutcomes:
    """The outcomes of the search on some rows with these devices free. There are few such rows."""

    def __init__(self, plan: ClaimsPlan, gone: GoneClaims, nodes: View, rows: Rows) -> None:
        results = list(freed_results(gone))
        left = nodes.devices.use.without(results)
        keys = {(each.driver, each.pool) for each in results}
        groups = nodes.device_groups
        found = []
        for row in np.arange(len(nodes.alive))[rows].tolist():
            views = groups.views(nodes.name(row), row)
            pools = [
                (view, (left if view.key in keys else nodes.devices.use).state(view))
                for view in views
            ]
            found.append(plan.search(pools).found.value)
        self._found = np.array(found, np.int8)

    @property
    def all_get_devices(self) -> bool:
        """Whether every row gets devices."""
        return bool(self.where(AllocationFound.DEVICES).all())

    def where(self, found: AllocationFound) -> NDArray[np.bool_]:
        """Returns the rows that have this outcome."""
        mask: NDArray[np.bool_] = self._found == found.value
        return mask


def claims_left_on(nodes: View, row: int) -> GoneClaims:
    """Returns the claims with devices of a node whose users have left it, by the uid of the user.

    Their controller is about to release the devices.
    """
    name, there = nodes.name(row), nodes.pods(row)
    found: dict[str, list[ResourceClaim]] = {}
    for claim in nodes.devices.claims:
        users = [user.uid for user in claim.reserved_for]
        if not users or any(uid in there for uid in users) or not _is_bound_to(claim, name):
            continue
        for uid in users:
            found.setdefault(uid, []).append(claim)
    return {uid: tuple(claims) for uid, claims in found.items()}


def _is_bound_to(claim: ResourceClaim, node_name: str) -> bool:
    selector = None if claim.allocation is None else claim.allocation.node_selector
    return selector is not None and any(
        field.key == NAME_FIELD and node_name in (field.values or ())
        for term in selector.node_selector_terms
        for field in term.match_fields or ()
    )
