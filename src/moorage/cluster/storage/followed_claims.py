"""Finds the waiting pods whose claims or volumes have changed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable


class FollowedClaims:
    """Followed pods by the things that they depend on: claims, volumes, and volumes in use."""

    __slots__ = ("_changed", "_pods", "_things")

    def __init__(self) -> None:
        self._pods: dict[Hashable, dict[str, None]] = {}
        self._things: dict[str, tuple[Hashable, ...]] = {}
        #: The uids of pods that depend on a thing that has changed.
        self._changed: dict[str, None] = {}

    def __len__(self) -> int:
        """Returns how many pods are followed."""
        return len(self._things)

    def has(self, thing: Hashable) -> bool:
        """Returns whether any followed pod depends on a thing."""
        return thing in self._pods

    def follow(self, uid: str, things: Iterable[Hashable]) -> None:
        """Follows a pod until one of these things changes or the pod is forgotten."""
        self.forget(uid)
        known = self._things[uid] = tuple(things)
        for thing in known:
            self._pods.setdefault(thing, {})[uid] = None

    def forget(self, uid: str) -> None:
        """Stops following a pod."""
        self._changed.pop(uid, None)
        for thing in self._things.pop(uid, ()):
            pods = self._pods.get(thing)
            if pods is not None:
                pods.pop(uid, None)
                if not pods:
                    del self._pods[thing]

    def touch(self, thing: Hashable) -> None:
        """Notes that a thing changes: the pods that depend on it are followed no more."""
        pods = self._pods.get(thing)
        if pods is None:
            return
        for uid in list(pods):
            self.forget(uid)
            self._changed[uid] = None

    def touch_all(self) -> None:
        """Notes that any thing may have changed."""
        for uid in list(self._things):
            self.forget(uid)
            self._changed[uid] = None

    def take_changed(self) -> list[str]:
        """Returns, once, the uids of the pods that depend on changed things."""
        changed = list(self._changed)
        self._changed.clear()
        return changed
