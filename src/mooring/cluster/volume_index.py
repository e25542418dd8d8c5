"""Volumes found by what a claim looks for: its class and size, or its own name."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from mooring.objects.storage import PersistentVolume


class VolumeIndex:
    """Volumes that no claim has, by class and size; the others by the claim that has them."""

    def __init__(self) -> None:
        self._free: dict[str, list[tuple[int, str]]] = {}
        self._taken: dict[str, list[str]] = {}

    def free(self, class_name: str, at_least: int) -> Iterator[str]:
        """The free volumes of a class that are large enough, the smallest first."""
        listed = self._free.get(class_name, [])
        for at in range(bisect_left(listed, (at_least, "")), len(listed)):
            yield listed[at][1]

    def taken_by(self, claim_key: str) -> tuple[str, ...]:
        """The volumes whose claimRef names a claim, in the order of their names."""
        return tuple(self._taken.get(claim_key, ()))

    def add(self, volume: PersistentVolume) -> None:
        if volume.claim_ref is None:
            insort(self._free.setdefault(volume.class_name, []), (volume.capacity, volume.name))
        else:
            insort(self._taken.setdefault(volume.claim_ref.key, []), volume.name)

    def discard(self, volume: PersistentVolume) -> None:
        if volume.claim_ref is None:
            listed = self._free[volume.class_name]
            del listed[bisect_left(listed, (volume.capacity, volume.name))]
            if not listed:
                del self._free[volume.class_name]
        else:
            names = self._taken[volume.claim_ref.key]
            names.remove(volume.name)
            if not names:
                del self._taken[volume.claim_ref.key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VolumeIndex) and (self._free, self._taken) == (
            other._free,
            other._taken,
        )

    __hash__ = None  # type: ignore[assignment]
