"""Advice about volumes: which of them keeps the pod from nodes."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.framework.advice import MOST_GROUPS, Advice
from mooring.framework.edits import DropVolume
from mooring.objects.pod import Pod
from mooring.objects.volume import Volume

from .case import Case, RowNumbers


def advise_on_volumes(case: Case, rows: RowNumbers) -> Iterator[Advice]:
    """Each volume by itself, then all of them; who is to blame shows when it is tried."""
    volumes = case.pod.spec.volumes or ()
    for volume in volumes[:MOST_GROUPS]:
        told = f"volume {_described(volume, case.pod)} is in the way"
        yield Advice(told, (DropVolume(volume.name),), kind="volumes")
    if len(volumes) > 1:
        drops = tuple(DropVolume(volume.name) for volume in volumes)
        yield Advice("its volumes are in the way", drops, kind="volumes")


def _described(volume: Volume, pod: Pod) -> str:
    if not volume.claims:
        return volume.name
    return f"{volume.name} (claim {volume.claim_of(pod.name).name})"
