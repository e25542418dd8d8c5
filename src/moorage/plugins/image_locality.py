"""ImageLocality: better a node that has the pod's images already, the large ones above all."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self

import numpy as np

from moorage.cluster import Change, RowFacts, Rows, Scope, View
from moorage.config import FeatureGates
from moorage.framework.plugin import (
    MAX_SCORE,
    Reduction,
    Rescore,
    Score,
    Scores,
    Sign,
    rescore_row,
)
from moorage.objects.container import add_tag
from moorage.objects.pod import Pod
from moorage.objects.quantity import clamp

_MIB = 2**20
# Less than this is pulled in no time.
_LEAST_BYTES = 23 * _MIB
# More than this per image makes no difference any more.
_MOST_BYTES_PER_IMAGE = 1000 * _MIB


class ImageLocality(Score[Pod], Sign):
    """Adds up the images that a node has, each weighed by the share of nodes that have it."""

    name = "ImageLocality"
    reads = Change.IMAGES | Change.MEMBERSHIP
    scope = Scope.CLUSTER
    reduces = Reduction.NOTHING

    def __init__(self, *, counts_volumes: bool = False) -> None:
        self._counts_volumes = counts_volumes

    @classmethod
    def create(cls, args: Any, gates: FeatureGates) -> Self:
        return cls(counts_volumes=gates.version.counts_image_volumes)

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return tuple(sorted(_list_images(pod))), len(pod.spec.all_containers)

    def score(self, prepared: Pod, nodes: View, rows: Rows) -> Scores:
        present_bytes: Scores = np.zeros(nodes.count(rows), np.int64)
        names = _list_images(prepared)
        expected = len(names) if self._counts_volumes else len(prepared.spec.all_containers)
        most_bytes = _MOST_BYTES_PER_IMAGE * expected
        for name in names:
            known = nodes.image(name)
            if known is not None:
                image, present = known
                # The weight keeps an image on one node from drawing every pod of a kind there.
                share = len(image.rows) / len(nodes)
                size = int(clamp(image.size_bytes) * share)
                # More than counts in the end must not overflow the sum.
                present_bytes += present[rows] * min(size, most_bytes)
        counted = np.clip(present_bytes, _LEAST_BYTES, most_bytes) - _LEAST_BYTES
        return counted * MAX_SCORE // (most_bytes - _LEAST_BYTES)

    def rescore(self, prepared: Pod, nodes: View, row: RowFacts, scores: Scores) -> Rescore:
        return rescore_row(self, prepared, nodes, row, scores)


def _list_images(pod: Pod) -> tuple[str, ...]:
    """Returns the images of containers, then of volumes, as nodes report them."""
    volumes = pod.spec.volumes
    if not volumes:
        return pod.spec.image_names
    mounted = [add_tag(each.image.reference) for each in volumes if each.image is not None]
    return (*pod.spec.image_names, *mounted)
