"""Checks whether the volumes of a pod are bound, after their binding was written."""

from __future__ import annotations

import numpy as np

from moorage.cluster import View
from moorage.cluster.storage.objects import Binding, Reservation
from moorage.framework.status import Code, Rejected
from moorage.objects.storage import PersistentVolume

from .volume_search import find_fault, is_faulty, usable


def progress(reserved: Reservation, nodes: View) -> bool | Rejected:
    """Whether every claim is bound. Returns a rejection if one cannot be bound as decided."""
    row = nodes.row(reserved.node_name)
    if row is None:
        name = reserved.node_name
        return _fail(f'failed to get node "{name}": node "{name}" not found')
    for binding in reserved.bindings:
        bound = _is_bound(binding, nodes, row)
        if bound is not True:
            return bound
    for key in reserved.provisions:
        bound = _is_provisioned(key, nodes, row)
        if bound is not True:
            return bound
    return True


def _is_bound(binding: Binding, nodes: View, row: int) -> bool | Rejected:
    volume = nodes.storage.known_volume(binding.volume_name)
    claim = nodes.storage.known_claim(binding.claim.key)
    if volume is None:
        text = f'could not find v1.PersistentVolume "{binding.volume_name}"'
        return _fail(f"failed to check binding: {text}")
    if claim is None:
        text = f'could not find v1.PersistentVolumeClaim "{binding.claim.key}"'
        return _fail(f"failed to check binding: {text}")
    if not nodes.storage.is_written(binding):
        return False
    if _is_faulty(volume, nodes, row):
        return _fail(f"failed to translate pv to csi: {find_fault(volume)}")
    if not _is_usable(volume, nodes, row):
        return _reject_place(volume, nodes, row)
    if volume.claim_ref != binding.claim:
        return _fail(f'ClaimRef got reset for pv "{volume.name}"')
    if claim.volume_name not in ("", volume.name):
        return _fail(f'PVC "{claim.key}" is bound to pv "{claim.volume_name}"')
    return claim.is_bound


def _is_provisioned(key: str, nodes: View, row: int) -> bool | Rejected:
    claim = nodes.storage.known_claim(key)
    if claim is None:
        text = f'could not find v1.PersistentVolumeClaim "{key}"'
        return _fail(f"failed to check provisioning pvc: {text}")
    if not nodes.storage.is_selected(key):
        return False
    # A provisioner that fails removes the annotation.
    if claim.selected_node != nodes.name(row):
        return _fail(f'provisioning failed for PVC "{claim.name}"')
    if claim.volume_name:
        volume = nodes.storage.known_volume(claim.volume_name)
        if volume is None:
            return False
        if _is_faulty(volume, nodes, row):
            return _fail(find_fault(volume))
        if not _is_usable(volume, nodes, row):
            return _reject_place(volume, nodes, row)
    return claim.is_bound


def _is_faulty(volume: PersistentVolume, nodes: View, row: int) -> bool:
    return bool(is_faulty(volume, nodes, np.array([row], np.intp))[0])


def _is_usable(volume: PersistentVolume, nodes: View, row: int) -> bool:
    return bool(usable(volume, nodes, np.array([row], np.intp))[0])


def _reject_place(volume: PersistentVolume, nodes: View, row: int) -> Rejected:
    return _fail(
        f'pv "{volume.name}" node affinity doesn\'t match node "{nodes.name(row)}": '
        "no matching NodeSelectorTerms"
    )


def _fail(why: str) -> Rejected:
    return Rejected(Code.ERROR, (f"binding volumes: {why}",))
