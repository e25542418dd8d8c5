"""Indexes of storage objects: assumed forms, attachments, and volumes by class and claim."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from moorage.objects.csi import VolumeAttachment
from moorage.objects.storage import PersistentVolume

T = TypeVar("T")


class AssumedObjects(Generic[T]):
    """Objects by name, as they were last seen and as they are assumed to be.

    An assumption lasts until the object confirms or contradicts it, or until it is restored.

    Several pods can rely on one assumption; it is restored when the last of them gives it up.
    """

    def __init__(self, upheld: Callable[[T, T], T | None]) -> None:
        #: Returns a newer object with what is assumed of it; None if the object itself confirms or
        #: contradicts the assumption.
        self._upheld = upheld
        self._known: dict[str, T] = {}
        self._assumed: dict[str, T] = {}
        self._owners: dict[str, set[str]] = {}

    def get(self, name: str) -> T | None:
        """Returns the object with what is assumed of it."""
        return self._assumed.get(name) or self._known.get(name)

    def known(self, name: str) -> T | None:
        """Returns the object as it was last seen."""
        return self._known.get(name)

    @property
    def assumed(self) -> Mapping[str, T]:
        return self._assumed

    @property
    def owners(self) -> Mapping[str, set[str]]:
        """Returns the uids of the pods that rely on each assumption."""
        return self._owners

    def __iter__(self) -> Iterator[T]:
        """Returns all objects as they were last seen."""
        return iter(self._known.values())

    def put(self, name: str, item: T) -> None:
        self._known[name] = item
        if name in self._assumed:
            upheld = self._upheld(item, self._assumed[name])
            if upheld is None:
                self._forget(name)
            else:
                self._assumed[name] = upheld

    def drop(self, name: str) -> None:
        self._known.pop(name, None)
        self._forget(name)

    def assume(self, name: str, item: T, owner: str) -> None:
        if self._known[name] != item:
            self._assumed[name] = item
            self._owners.setdefault(name, set()).add(owner)

    def assume_for(self, name: str, item: T, owners: set[str]) -> None:
        """Assumes the same object for several pods."""
        for owner in owners:
            self.assume(name, item, owner)

    def restore(self, name: str, owner: str) -> None:
        owners = self._owners.get(name, set())
        owners.discard(owner)
        if not owners:
            self._forget(name)

    def _forget(self, name: str) -> None:
        self._assumed.pop(name, None)
        self._owners.pop(name, None)


class Attachments:
    """The attachments by name, by node and by volume."""

    def __init__(self) -> None:
        self._known: dict[str, VolumeAttachment] = {}
        self._on: dict[str, dict[str, VolumeAttachment]] = {}
        self._of: dict[str, dict[str, VolumeAttachment]] = {}

    def get(self, name: str) -> VolumeAttachment | None:
        return self._known.get(name)

    def on(self, node_name: str) -> tuple[VolumeAttachment, ...]:
        return tuple(self._on.get(node_name, {}).values())

    def of(self, volume_name: str) -> tuple[VolumeAttachment, ...]:
        known = self._of.get(volume_name)
        return () if known is None else tuple(known.values())

    def put(self, item: VolumeAttachment) -> None:
        self.drop(item.name)
        self._known[item.name] = item
        self._on.setdefault(item.node_name, {})[item.name] = item
        self._of.setdefault(item.volume_name, {})[item.name] = item

    def drop(self, name: str) -> None:
        known = self._known.pop(name, None)
        if known is None:
            return
        for index, key in ((self._on, known.node_name), (self._of, known.volume_name)):
            del index[key][name]
            if not index[key]:
                del index[key]

    def __iter__(self) -> Iterator[VolumeAttachment]:
        return iter(self._known.values())


class VolumeIndex:
    """Volumes without a claim by class and size, and volumes with a claim by claim."""

    def __init__(self) -> None:
        self._free: dict[str, list[tuple[int, str]]] = {}
        self._taken: dict[str, list[str]] = {}

    def free(self, class_name: str, at_least: int) -> Iterator[str]:
        """Yields the free volumes of a class that are large enough, the smallest first."""
        listed = self._free.get(class_name, [])
        for at in range(bisect_left(listed, (at_least, "")), len(listed)):
            yield listed[at][1]

    def count_free(self, class_name: str) -> int:
        return len(self._free.get(class_name, ()))

    def taken_by(self, claim_key: str) -> tuple[str, ...]:
        """Returns the volumes whose claimRef names a claim, in the order of their names."""
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
