"""What was found out about the volumes of a pod, so that it is not looked up time and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from mooring.objects.pod import Pod

S = TypeVar("S")
T = TypeVar("T")


class PodFacts(Generic[S]):
    """The facts about the pod that was asked about last, until a storage object changes.

    A decision asks many times about the volumes of one pod, and the next decision about another.
    """

    __slots__ = ("_known", "_pod", "_storage")

    def __init__(self, storage: S) -> None:
        self._storage = storage
        self._pod: Pod | None = None
        self._known: dict[Callable[[Pod, S], Any], Any] = {}

    def find(self, pod: Pod, read: Callable[[Pod, S], T]) -> T:
        """What a function says that reads a pod's spec, name and uid, and storage objects."""
        last, known = self._pod, self._known
        if last is not pod:
            if last is None or not _is_same(last, pod):
                known.clear()
            self._pod = pod
        if read in known:
            fact: T = known[read]
            return fact
        fact = known[read] = read(pod, self._storage)
        return fact

    def forget(self) -> None:
        """A storage object changes."""
        self._pod = None


def _is_same(one: Pod, other: Pod) -> bool:
    """Whether it is the same pod, such as before and after it got a node."""
    return (
        one.spec is other.spec
        and one.uid == other.uid
        and one.name == other.name
        and one.namespace == other.namespace
    )
