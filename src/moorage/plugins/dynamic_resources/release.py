"""Releases the devices of a claim if its pod fits nowhere with them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import View
from moorage.framework.attempt import Failed, Filtered
from moorage.framework.device_writes import ClaimRelease
from moorage.framework.plugin import NoRemedy
from moorage.framework.status import Code
from moorage.objects.resource_claim import ResourceClaim

from .claim_rows import UNAVAILABLE, ClaimRows
from .claims_to_write import refer_to
from .preparation import PreparedClaims


def find_release(
    prepared: PreparedClaims, failed: Failed, nodes: View, plugin: str
) -> NoRemedy | None:
    """Returns which claim to release, so that the next attempt may find better devices.

    It is None if there is none.
    """
    candidates = releasable(prepared, failed, nodes, plugin)
    if candidates:
        release = ClaimRelease(refer_to(candidates[0]))
        text = "deallocation of ResourceClaim completed"
        return NoRemedy(Code.UNSCHEDULABLE, (text,), release=release)
    if prepared.extended is not None and prepared.extended.stale is not None:
        release = ClaimRelease(refer_to(prepared.extended.stale), deletes=True)
        text = "deletion of ResourceClaim completed"
        return NoRemedy(Code.UNSCHEDULABLE, (text,), release=release)
    return None


def releasable(
    prepared: PreparedClaims, failed: Failed, nodes: View, plugin: str
) -> list[ResourceClaim]:
    """Returns the claims that a node cannot use, and that only this pod or its group uses."""
    if not prepared.allocated:
        return []
    rows = [np.zeros(0, np.intp)]
    for filtered in (failed.filtered, failed.tried_first):
        rows += [] if filtered is None else _find_refused(filtered, plugin)
    asked = ClaimRows(prepared, nodes, np.unique(np.concatenate(rows)))
    users = {prepared.pod.uid, *_find_idle_group(prepared, nodes)}
    return [
        each.claim
        for each in prepared.allocated
        if each.claim.allocation is not None
        and all(user.uid in users for user in each.claim.reserved_for)
        and not asked.available(each).all()
    ]


def _find_idle_group(prepared: PreparedClaims, nodes: View) -> Iterator[str]:
    """Yields the uid of the pod's group if none of its members has a node."""
    group = prepared.group
    if group is not None and not nodes.groups.placed(group.group_key):
        yield group.uid


def _find_refused(filtered: Filtered, plugin: str) -> Iterator[NDArray[np.intp]]:
    """Yields the rows that the plugin refused because a claim cannot be used there."""
    for layer in filtered.layers:
        if layer.plugin == plugin:
            at = layer.verdict.reasons.index(UNAVAILABLE)
            yield filtered.rows[layer.decided & layer.verdict.failed[at]]
    for other in filtered.amended:
        yield from _find_refused(other, plugin)
