"""Advice about volumes: which of them keeps the pod from nodes."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.objects.pod import Pod
from mooring.objects.volume import Volume

from .case import Case, RowNumbers
from .edits import DropVolume
from .proposals import MOST_GROUPS, Proposal


def advise_on_volumes(case: Case, rows: RowNumbers) -> Iterator[Proposal]:
    """Each volume by itself, then all of them; who is to blame shows when it is tried."""
    volumes = case.pod.spec.volumes or ()
    for volume in volumes[:MOST_GROUPS]:
        told = f"volume {_described(volume, case.pod)} is in the way"
        yield Proposal("volumes", told, (DropVolume(volume.name),))
    if len(volumes) > 1:
        drops = tuple(DropVolume(volume.name) for volume in volumes)
        yield Proposal("volumes", "its volumes are in the way", drops)


def _described(volume: Volume, pod: Pod) -> str:
    if not volume.claims:
        return volume.name
    return f"{volume.name} (claim {volume.claim_of(pod.name).name})"
