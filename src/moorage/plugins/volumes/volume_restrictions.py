"""VolumeRestrictions: only one pod at a time can use some disks and claims."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from moorage.cluster import Change, Mask, Rows, Scope, View
from moorage.cluster.storage.objects import KnownStorage
from moorage.cluster.storage.use import USED_STORAGE
from moorage.framework.plugin import Filter, PreFilter, Sign
from moorage.framework.status import Reason, Rejected, unresolvable
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Topics, Wakeup, on
from moorage.objects.pod import Pod
from moorage.objects.storage import READ_WRITE_ONCE_POD
from moorage.objects.volume import ClaimUse, Disk

from .volume_claims import (
    OWN_CLAIMS,
    AdviseOnVolumes,
    claim_key,
    claim_names,
    claim_not_found,
    names_claim,
)

_DISK_TAKEN = Reason("node(s) had no available disk")
_CLAIM_TAKEN = Reason(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)


@dataclass(frozen=True, slots=True)
class Exclusive:
    """The disks and claims that a pod cannot share, and how often others use the claims."""

    disks: tuple[Disk, ...]
    claim_names: frozenset[str]
    conflicts: int


class VolumeRestrictions(PreFilter[Exclusive], Filter[Exclusive], Sign, AdviseOnVolumes):
    """Rejects nodes whose pods use a disk of the pod, and all nodes while its claim is in use."""

    name = "VolumeRestrictions"
    reads = Change.VOLUMES
    scope = Scope.CLUSTER

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        if not pod.spec.claiming and not pod.spec.disks:
            return None
        names = _exclusive_names(pod, nodes)
        return pod.spec.disks, names and (pod.namespace, names)

    def watch(self, pod: Pod, nodes: View) -> Change:
        return self.reads if pod.spec.claiming or pod.spec.disks else Change.NONE

    def pre_filter(self, pod: Pod, nodes: View) -> Exclusive | Rejected | None:
        if not pod.spec.claiming and not pod.spec.disks:
            return None
        names = _exclusive_names(pod, nodes)
        if isinstance(names, Rejected):
            return names
        used = nodes.ledger(USED_STORAGE)
        taken = sum(bool(used.of((f"{pod.namespace}/{name}", False))) for name in names)
        if not taken and not pod.spec.disks:
            return None
        return Exclusive(pod.spec.disks, names, taken)

    def add_pod(self, prepared: Exclusive, nodes: View, pod: Pod, row: int) -> Exclusive:
        return _move(prepared, pod, 1)

    def remove_pod(self, prepared: Exclusive, nodes: View, pod: Pod, row: int) -> Exclusive:
        return _move(prepared, pod, -1)

    def filter(self, prepared: Exclusive, nodes: View, rows: Rows) -> Verdict:
        disk_taken = _disk_taken(prepared.disks, nodes, rows)
        if prepared.conflicts <= 0:
            return Verdict.rejecting(disk_taken, _DISK_TAKEN)
        return Verdict((_DISK_TAKEN, _CLAIM_TAKEN), np.stack((disk_taken, ~disk_taken)))

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(
                Resource.POD,
                Action.DELETE,
                self._after_pod_is_gone,
                reads=claim_names,
                topics=Topics(_find_freed, _find_used),
            ),
            on(Resource.NODE, Action.ADD),
            on(
                Resource.PERSISTENT_VOLUME_CLAIM,
                Action.ADD,
                names_claim,
                reads=claim_names,
                topics=OWN_CLAIMS,
            ),
        )

    def _after_pod_is_gone(self, pod: Pod, old: Pod, new: None) -> bool:
        if pod.namespace != old.namespace:
            return False
        return any(
            _conflict(wanted, freed) for wanted in pod.spec.disks for freed in old.spec.disks
        ) or bool(_claims_of(pod) & _claims_of(old))


def _find_used(pod: Pod) -> list[Hashable]:
    """Returns the disks and claims of a pod, which may keep other pods from nodes."""
    disks = [(pod.namespace, disk.kind, disk.identity) for disk in pod.spec.disks]
    return [*disks, *(claim_key(pod, use) for use in _claims_of(pod))]


def _find_freed(old: Pod, new: None) -> list[Hashable]:
    return _find_used(old)


def _exclusive_names(pod: Pod, nodes: View) -> frozenset[str] | Rejected:
    """Returns the claims of a pod that only one pod can use, or why the pod is rejected."""
    return nodes.storage.facts.find(pod, _find_exclusive_names)


def _find_exclusive_names(pod: Pod, storage: KnownStorage) -> frozenset[str] | Rejected:
    names: set[str] = set()
    for use, _, claim in storage.uses_of(pod):
        if use.ephemeral:
            continue
        if claim is None:
            return unresolvable(claim_not_found(use.name))
        if READ_WRITE_ONCE_POD in claim.access_modes:
            names.add(use.name)
    return frozenset(names)


def _move(prepared: Exclusive, pod: Pod, amount: int) -> Exclusive:
    # Claims are compared by name without their namespace, as in kube-scheduler.
    named = sum(use.name in prepared.claim_names for use in pod.claims if not use.ephemeral)
    if not named:
        return prepared
    return replace(prepared, conflicts=prepared.conflicts + amount * named)


def _disk_taken(disks: tuple[Disk, ...], nodes: View, rows: Rows) -> Mask:
    used, taken = nodes.ledger(USED_STORAGE), np.zeros(len(nodes.alive), np.bool_)
    for disk in disks:
        # Who only reads the disk is in the way of those who write.
        for read_only in (False,) if disk.read_only else (False, True):
            users = used.of(Disk(disk.kind, disk.identity, read_only))
            taken[list(users)] = True
    return taken[rows]


def _conflict(one: Disk, other: Disk) -> bool:
    same = (one.kind, one.identity) == (other.kind, other.identity)
    return same and not (one.read_only and other.read_only)


def _claims_of(pod: Pod) -> set[ClaimUse]:
    return {use for use in pod.claims if not use.ephemeral}
