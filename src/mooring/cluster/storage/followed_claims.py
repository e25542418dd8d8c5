"""Waiting pods whose claims are followed, to be told of once something about them has changed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable


class FollowedClaims:
    """The pods by what their claims are known by: claims, volumes, and volumes in use."""

    __slots__ = ("_changed", "_pods", "_things")

    def __init__(self) -> None:
        self._pods: dict[Hashable, dict[str, None]] = {}
        self._things: dict[str, tuple[Hashable, ...]] = {}
        #: Pods of whose claims something has changed.
        self._changed: dict[str, None] = {}

    def __len__(self) -> int:
        """How many pods are followed."""
        return len(self._things)

    def has(self, thing: Hashable) -> bool:
        """Whether any pod is followed by a thing."""
        return thing in self._pods

    def follow(self, uid: str, things: Iterable[Hashable]) -> None:
        """From now on, a change of any of these is told, once."""
        self.forget(uid)
        known = self._things[uid] = tuple(things)
        for thing in known:
            self._pods.setdefault(thing, {})[uid] = None

    def forget(self, uid: str) -> None:
        """The pod waits no more, or is followed anew."""
        self._changed.pop(uid, None)
        for thing in self._things.pop(uid, ()):
            pods = self._pods.get(thing)
            if pods is not None:
                pods.pop(uid, None)
                if not pods:
                    del self._pods[thing]

    def touch(self, thing: Hashable) -> None:
        """Something changes of what pods are followed by."""
        pods = self._pods.get(thing)
        if pods is None:
            return
        for uid in list(pods):
            self.forget(uid)
            self._changed[uid] = None

    def touch_all(self) -> None:
        """Anything may have changed."""
        for uid in list(self._things):
            self.forget(uid)
            self._changed[uid] = None

    def take_changed(self) -> list[str]:
        """The pods that are to be told of, which are followed no more."""
        changed = list(self._changed)
        self._changed.clear()
        return changed
