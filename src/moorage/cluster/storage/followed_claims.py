"""Finds waiting pods whose claims or volumes have changed, and nominated pods that share some."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from moorage.objects.pod import Pod


class FollowedClaims:
    """Followed pods by the things that they depend on: claims, volumes, and volumes in use."""

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


#: The things by which the volumes of a pod are followed; None where these do not cover them all.
Things = tuple[Hashable, ...] | None


class NominatedClaims:
    """The nominated pods that have volumes, by the things that stand for these volumes."""

    def __init__(self, find_things: Callable[[Pod], Things]) -> None:
        self._find_things = find_things
        self._pods: dict[str, Pod] = {}
        self._followed = FollowedClaims()
        #: The uids of pods with a volume that no thing stands for.
        self._vague: set[str] = set()

    def put(self, pod: Pod) -> None:
        """Adds a nominated pod."""
        if pod.spec.volumes:
            self._pods[pod.uid] = pod
            self._read(pod)

    def drop(self, uid: str) -> None:
        """Removes a pod whose nomination ends."""
        if self._pods.pop(uid, None) is not None:
            self._followed.forget(uid)
            self._vague.discard(uid)

    def touch(self, thing: Hashable) -> None:
        """Notes that a thing changes."""
        self._followed.touch(thing)

    def touch_all(self) -> None:
        """Notes that any thing may have changed."""
        self._followed.touch_all()

    def are_shared_by(self, pod: Pod) -> bool:
        """Returns whether a pod may share a volume with a nominated pod."""
        if not self._pods:
            return False
        for uid in self._followed.take_changed():
            self._read(self._pods[uid])
        things = self._find_things(pod)
        if things is None or self._vague:
            return True
        return any(map(self._followed.has, things))

    def _read(self, pod: Pod) -> None:
        things = self._find_things(pod)
        if things is None:
            self._vague.add(pod.uid)
        else:
            self._followed.follow(pod.uid, things)
