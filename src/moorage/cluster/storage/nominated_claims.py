"""The volumes of nominated pods, to find the pods that share one of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import chain

from moorage.objects.pod import Pod

#: The things that stand for the volumes of a pod; None where these do not cover them all.
Things = tuple[Hashable, ...] | None


class NominatedClaims:
    """The nominated pods that have volumes."""

    def __init__(self, find_things: Callable[[Pod], Things]) -> None:
        self._find_things = find_things
        self._pods: dict[str, Pod] = {}
        #: What stands for all their volumes, while that is known.
        self._things: frozenset[Hashable] | None = None

    def put(self, pod: Pod) -> None:
        """Adds a nominated pod."""
        if pod.spec.volumes:
            self._pods[pod.uid] = pod
            self.forget()

    def drop(self, uid: str) -> None:
        """Removes a pod whose nomination ends."""
        if self._pods.pop(uid, None) is not None:
            self.forget()

    def forget(self) -> None:
        """Forgets what follows from storage objects, because one of them changes."""
        self._things = None

    def are_shared_by(self, pod: Pod) -> bool:
        """Returns whether a pod may share a volume with a nominated pod."""
        if not self._pods:
            return False
        things = self._find_things(pod)
        if things is None:
            return True
        if self._things is None:
            found = [self._find_things(each) for each in self._pods.values()]
            if None in found:
                return True
            self._things = frozenset(chain.from_iterable(each or () for each in found))
        return not self._things.isdisjoint(things)
