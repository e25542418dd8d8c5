"""NodeVolumeLimits: a CSI driver attaches only so many volumes to a node."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self

import msgspec
import numpy as np

from moorage.cluster import Change, Mask, RowFacts, Rows, Scope, View
from moorage.cluster.storage.objects import KnownStorage
from moorage.config import FeatureGates
from moorage.framework.plugin import (
    INFEASIBLE,
    UPDATED,
    Filter,
    PreFilter,
    Rescore,
    Sign,
)
from moorage.framework.status import Code, PluginError, Reason
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Topics, Wakeup, on
from moorage.objects.csi import CSINode, VolumeAttachment
from moorage.objects.in_tree import Sources, VolumeKey
from moorage.objects.pod import Pod

from .volume_claims import (
    OWN_CLAIMS,
    AdviseOnVolumes,
    claim_names,
    claim_not_found,
    not_made_for,
    uses_claim,
)

_EXCEEDED = Reason("node(s) exceed max volume count")


class Volumes(msgspec.Struct, frozen=True):
    """The volumes of a pod by driver, or why they are not known."""

    by_driver: tuple[tuple[str, tuple[VolumeKey, ...]], ...] = ()
    missing: str = ""
    problem: str = ""


class NodeVolumeLimits(PreFilter[Volumes], Filter[Volumes], Sign, AdviseOnVolumes):
    """Rejects nodes to which the volumes of the pod cannot be attached any more."""

    name = "NodeVolumeLimits"
    reads = Change.VOLUMES | Change.ATTACH_LIMITS
    scope = Scope.CLUSTER

    def __init__(self, *, requires_drivers: bool = False) -> None:
        self._requires_drivers = requires_drivers

    @classmethod
    def create(cls, args: Any, gates: FeatureGates) -> Self:
        return cls(requires_drivers=gates["VolumeLimitScaling"])

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        if not _uses_drivers(pod):
            return None
        volumes = nodes.storage.facts.find(pod, _find_volumes)
        use = nodes.volume_use.volumes
        # Volumes of one driver that no pod uses yet are interchangeable.
        by_driver = [
            (driver, len(keys), frozenset(filter(use.of, keys)))
            for driver, keys in volumes.by_driver
        ]
        return frozenset(by_driver), volumes.missing, volumes.problem

    def watch(self, pod: Pod, nodes: View) -> Change:
        return self.reads if _uses_drivers(pod) else Change.NONE

    def pre_filter(self, pod: Pod, nodes: View) -> Volumes | None:
        if not _uses_drivers(pod):
            return None
        volumes = nodes.storage.facts.find(pod, _find_volumes)
        if self._requires_drivers or volumes.problem or volumes.missing:
            return volumes
        limits = nodes.csi_nodes.limits
        return (
            volumes if any(limits(driver) is not None for driver, _ in volumes.by_driver) else None
        )

    def filter(self, prepared: Volumes, nodes: View, rows: Rows) -> Verdict:
        if prepared.problem:
            raise PluginError(prepared.problem)
        if prepared.missing:
            reason = Reason(prepared.missing, Code.UNRESOLVABLE)
            return Verdict.rejecting(~nodes.nothing(rows), reason)
        if not self._requires_drivers and _fit_everywhere(prepared, nodes):
            return Verdict.accepting(nodes.count(rows))
        masks = [_find_exceeded(*volumes, nodes, rows) for volumes in prepared.by_driver]
        exceeded = masks[0] if len(masks) == 1 else _unite(masks, nodes, rows)
        missing = self._find_missing(prepared, nodes, rows)
        if not missing:
            return Verdict.rejecting(exceeded, _EXCEEDED)
        refused = np.logical_or.reduce([mask for _, mask in missing])
        return Verdict(
            (*(reason for reason, _ in missing), _EXCEEDED),
            np.stack([*(mask for _, mask in missing), exceeded & ~refused]),
        )

    def recheck(self, prepared: Volumes, nodes: View, row: RowFacts) -> Rescore:
        if prepared.problem or prepared.missing or self._requires_drivers:
            return Rescore.UNKNOWN
        for driver, volumes in prepared.by_driver:
            limits = nodes.csi_nodes.limits(driver)
            if limits is None:
                continue
            at = row.number
            room = limits.item(at) - nodes.volume_use.attached.of(driver)[at]
            of = nodes.volume_use.volumes.of
            if sum(at not in of(volume) for volume in volumes) > max(room, 0):
                return INFEASIBLE
        return UPDATED

    def _find_missing(
        self, prepared: Volumes, nodes: View, rows: Rows
    ) -> list[tuple[Reason, Mask]]:
        """Returns the rows that lack a required driver, with the reason; each row at most once."""
        found: list[tuple[Reason, Mask]] = []
        if not self._requires_drivers:
            return found
        rest = ~nodes.nothing(rows)
        for driver, _ in prepared.by_driver:
            known = nodes.storage.driver(driver)
            if known is not None and known.is_required:
                installed = nodes.csi_nodes.installed(driver)
                missing = rest if installed is None else rest & ~installed[rows]
                found.append((Reason(f"{driver} CSI driver is not installed on the node"), missing))
                rest = rest & ~missing
        return found

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(Resource.CSI_NODE, Action.ADD),
            on(Resource.CSI_NODE, Action.UPDATE, self._after_limits_change, alike=True),
            on(
                Resource.POD,
                Action.DELETE,
                self._after_pod_is_gone,
                alike=True,
                topics=Topics(_find_freed),
            ),
            on(
                Resource.PERSISTENT_VOLUME_CLAIM,
                Action.ADD,
                uses_claim,
                reads=claim_names,
                topics=OWN_CLAIMS,
            ),
            on(Resource.VOLUME_ATTACHMENT, Action.DELETE, self._after_detach, alike=True),
        )

    def _after_limits_change(self, pod: Pod, old: CSINode, new: CSINode) -> bool:
        if self._requires_drivers and new.drivers - old.drivers:
            return True
        return any(limit > old.limits.get(driver, 0) for driver, limit in new.limits.items())

    def _after_pod_is_gone(self, pod: Pod, old: Pod, new: None) -> bool:
        return _may_free_volumes(old)

    def _after_detach(self, pod: Pod, old: VolumeAttachment, new: None) -> bool:
        if any(not use.ephemeral for use in pod.claims):
            return True
        inline = (Sources.inline(volume).attachable() for volume in pod.spec.migratable)
        return any(each is not None and each.driver == old.attacher for each in inline)


def _uses_drivers(pod: Pod) -> bool:
    return bool(pod.spec.claiming or pod.spec.migratable)


def _find_volumes(pod: Pod, storage: KnownStorage) -> Volumes:
    for use, key, claim in storage.uses_of(pod):
        if not use.name:
            return Volumes(problem="PersistentVolumeClaim had no name")
        if claim is None:
            return Volumes(missing=f"looking up PVC {key}: {claim_not_found(use.name)}")
        if use.ephemeral and not claim.is_made_for(pod.uid):
            return Volumes(problem=not_made_for(pod, claim))
    by_driver: dict[str, list[VolumeKey]] = {}
    for volume in storage.volumes_of(pod):
        by_driver.setdefault(volume[0], []).append(volume)
    return Volumes(tuple([(driver, tuple(keys)) for driver, keys in by_driver.items()]))


def _may_free_volumes(gone: Pod) -> bool:
    return gone.has_place and _uses_drivers(gone)


def _find_freed(old: Pod, new: None) -> tuple[()] | None:
    return None if _may_free_volumes(old) else ()


def _unite(masks: list[Mask], nodes: View, rows: Rows) -> Mask:
    united = nodes.nothing(rows)
    for mask in masks:
        united |= mask
    return united


def _fit_everywhere(prepared: Volumes, nodes: View) -> bool:
    """Returns whether even the row with the most volumes and the least limit has room."""
    for driver, volumes in prepared.by_driver:
        most = nodes.volume_use.most_attached(driver) + len(volumes)
        if most > nodes.csi_nodes.least_limit(driver):
            return False
    return True


def _find_exceeded(driver: str, volumes: tuple[VolumeKey, ...], nodes: View, rows: Rows) -> Mask:
    """Returns where a driver cannot attach the pod's volumes in addition to those on the node."""
    limits = nodes.csi_nodes.limits(driver)
    if limits is None:
        return nodes.nothing(rows)
    room = limits[rows] - nodes.volume_use.attached.column(driver)[rows]
    users = [nodes.volume_use.volumes.of(volume) for volume in volumes]
    if not any(users):
        return room < len(volumes)
    new = np.full(len(nodes.alive), len(volumes), np.int64)
    for rows_of_one in users:
        # A volume that a pod on the node uses takes no further place. A volume that is attached
        # but not used does.
        new[list(rows_of_one)] -= 1
    return (new[rows] > 0) & (new[rows] > room)
