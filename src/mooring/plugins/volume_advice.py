"""Advice about volumes: which of them keeps the pod off nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Nodes
from mooring.framework.advice import MOST_GROUPS, Advice, Advise
from mooring.framework.edits import DropVolume
from mooring.objects.pod import Pod
from mooring.objects.volume import Volume


class AdviseOnVolumes(Advise[Any]):
    """The advice of all plugins about volumes: each volume by itself, then all of them.

    Which of them is in the way shows when the advice is tried.
    """

    def advise(
        self, pod: Pod, prepared: Any, nodes: Nodes, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        volumes = pod.spec.volumes or ()
        for volume in volumes[:MOST_GROUPS]:
            problem = f"volume {_describe(volume, pod)} is in the way"
            yield Advice(problem, (DropVolume(volume.name),), kind="volumes")
        if len(volumes) > 1:
            drops = tuple(DropVolume(volume.name) for volume in volumes)
            yield Advice("its volumes are in the way", drops, kind="volumes")


def _describe(volume: Volume, pod: Pod) -> str:
    if not volume.claims:
        return volume.name
    return f"{volume.name} (claim {volume.claim_of(pod.name).name})"
