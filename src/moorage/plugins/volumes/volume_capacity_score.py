"""Scores nodes by how much of their storage the claims of a pod would use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask
from moorage.framework.plugin import Scores
from moorage.objects.quantity import MOST_AMOUNT, clamp, units
from moorage.plugins.allocation import ShapePoint, curve

from .volume_search import Search

_FULL = 100

#: A class, the rows where it counts, and per row what is requested of it and its capacity (int64).
Load = tuple[str, Mask, NDArray[np.int64], NDArray[np.int64]]


class CapacityScore:
    """Scores by how full storage classes get, mapped by a shape and averaged over classes."""

    def __init__(self, shape: Sequence[ShapePoint]) -> None:
        self._curve = curve(shape)

    def score(self, found: Search, count: int) -> Scores:
        totals: Scores = np.zeros(count, np.int64)
        classes = np.zeros(count, np.int64)
        for present, requested, capacity in _by_class(found, count):
            over = (capacity == 0) | (requested > capacity)
            shares = np.where(over, _FULL, requested * _FULL // np.maximum(capacity, 1))
            totals += np.where(present, self._curve[shares], 0)
            classes += present
        # A half is rounded up; nothing here is negative.
        return np.floor(totals / np.maximum(classes, 1) + 0.5).astype(np.int64)


def _by_class(
    found: Search, count: int
) -> Iterator[tuple[Mask, NDArray[np.int64], NDArray[np.int64]]]:
    """Yields for each class where it counts, what is requested of it in all, and its capacity."""
    bound = np.zeros(count, np.bool_)
    for choice in found.choices:
        bound |= choice.found
    sums: dict[str, tuple[Mask, NDArray[np.int64], NDArray[np.int64]]] = {}
    for name, present, requested, capacity in _static(found):
        known = sums.get(name)
        if known is not None:
            present, requested, capacity = (
                known[0] | present,
                _add(known[1], requested),
                _add(known[2], capacity),
            )
        sums[name] = present, requested, capacity
    for name, present, requested, capacity in _dynamic(found, ~bound):
        # All volumes of a class come from the same storage, so that its capacity counts once.
        known = sums.get(name)
        if known is not None:
            capacity = np.where(present, capacity, known[2])
            present, requested = known[0] | present, _add(known[1], requested)
        sums[name] = present, requested, capacity
    yield from sums.values()


def _static(found: Search) -> Iterator[Load]:
    for choice in found.choices:
        sizes = np.array(
            [*(clamp(units(each.capacity)) for each in choice.candidates.volumes), 0], np.int64
        )
        requested = clamp(units(choice.claim.request or 0)) * choice.found.astype(np.int64)
        yield choice.claim.class_name, choice.found, requested, sizes[choice.places]


def _dynamic(found: Search, where: Mask) -> Iterator[Load]:
    """Yields what must be made from known capacities, on rows where nothing else is bound."""
    for each in found.provisions:
        present = each.needed & where & (each.places >= 0)
        sizes = np.array(
            [*(clamp(known.capacity_bytes or 0) for known in each.capacities), 0], np.int64
        )
        requested = clamp(units(each.claim.request or 0)) * present.astype(np.int64)
        yield each.claim.class_name, present, requested, sizes[each.places] * present


def _add(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the sum, at most MOST_AMOUNT: a hundred times as much still fits 64 bits."""
    return np.minimum(one + other, MOST_AMOUNT)
