"""Counting pods by what their CoexistPolicy makes of them.

Counted whether the feature gate is on or not: the gate decides who looks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mooring.objects.coexist import is_exclusive, is_ordinary
from mooring.objects.pod import Pod

from .changes import Change

#: int32 per row
PodCounts = NDArray[np.int32]

# Plain integers: combining flags of an enum takes many times as long.
_EXCLUSIVE, _ORDINARY = int(Change.EXCLUSIVE), int(Change.ORDINARY)


def coexistence_change(pod: Pod) -> int:
    """What the coming or going of a pod changes in the counts of its row."""
    if pod.owner is None and not pod.annotations and not pod.spec.coexist_policy:
        # Most pods of a benchmark and many of a cluster: nothing needs to be looked up.
        return _ORDINARY
    kinds = _EXCLUSIVE if is_exclusive(pod) else 0
    return kinds | _ORDINARY if is_ordinary(pod) else kinds


def nomination_change(pod: Pod) -> int:
    """What a pod changes by being nominated to a row: it counts there for some, and for no sum."""
    return int(Change.NOMINATED) | (coexistence_change(pod) & _EXCLUSIVE)


def count_coexistence(
    pod: Pod, row: int, amount: int, exclusive: PodCounts, ordinary: PodCounts
) -> None:
    """A pod came to (1) or left (-1) a row."""
    kinds = coexistence_change(pod)
    if kinds & _EXCLUSIVE:
        exclusive[row] += amount
    if kinds & _ORDINARY:
        ordinary[row] += amount
