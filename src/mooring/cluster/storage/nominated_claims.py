"""What claims pods have that are nominated to nodes, so that others know whether they share any."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from mooring.objects.pod import Pod

from .followed_claims import FollowedClaims

#: What the claims of a pod are known by; None where that is not all.
Things = tuple[Hashable, ...] | None


class NominatedClaims:
    """The nominated pods that have volumes, by what these are known by."""

    __slots__ = ("_find_things", "_followed", "_pods", "_vague")

    def __init__(self, find_things: Callable[[Pod], Things]) -> None:
        self._find_things = find_things
        self._pods: dict[str, Pod] = {}
        self._followed = FollowedClaims()
        #: Those of which not all is known.
        self._vague: set[str] = set()

    def put(self, pod: Pod) -> None:
        """A pod is nominated."""
        if pod.spec.volumes:
            self._pods[pod.uid] = pod
            self._read(pod)

    def drop(self, uid: str) -> None:
        """A nomination ends."""
        if self._pods.pop(uid, None) is not None:
            self._followed.forget(uid)
            self._vague.discard(uid)

    def touch(self, thing: Hashable) -> None:
        """Something changes of what claims are known by."""
        self._followed.touch(thing)

    def touch_all(self) -> None:
        """Anything may have changed."""
        self._followed.touch_all()

    def are_shared_by(self, pod: Pod) -> bool:
        """Whether a pod may have a volume that a nominated one has, too."""
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
