"""The volumes of nominated pods, to find the pods that share one of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from moorage.objects.pod import Pod

from .followed_claims import FollowedClaims

#: The things by which the volumes of a pod are followed; None where these do not cover them all.
Things = tuple[Hashable, ...] | None


class NominatedClaims:
    """The nominated pods that have volumes, by the things that stand for these volumes."""

    __slots__ = ("_find_things", "_followed", "_pods", "_vague")

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
