"""Sets of waiting pods: those that every hint answers alike, and those that fail together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from .pod_heap import PodHeap
from .queued_pod import QueuedPod

#: What like pods share: template, namespace, labels, who keeps them waiting, what makes them fail
#: alike, and whatever else the hints of these read.
Kind = tuple[Hashable, ...]


class LikePods:
    """Waiting pods that every hint answers alike. Never empty while it is filed."""

    __slots__ = ("_pods", "companions", "files", "kind", "topics")

    def __init__(self, kind: Kind, companions: Companions | None) -> None:
        self.kind = kind
        #: They and all others that fail where one of them does; None if nobody knows.
        self.companions = companions
        self._pods: dict[str, QueuedPod] = {}
        #: The files of plugins that have them; those that have their companions instead are there.
        self.files: list[dict[LikePods, None]] = []
        #: Each topic they are filed under, and where.
        self.topics: list[tuple[TopicFile, Hashable]] = []

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    def __contains__(self, uid: object) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    def push(self, queued: QueuedPod) -> None:
        self._pods[queued.pod.uid] = queued
        if self.companions is not None:
            self.companions.push(queued)

    def remove(self, uid: str) -> QueuedPod:
        """Removes and returns a pod that is here."""
        if self.companions is not None:
            self.companions.remove(uid)
        return self._pods.pop(uid)

    @property
    def any(self) -> QueuedPod | None:
        """Returns one of them."""
        return next(iter(self._pods.values()), None)


#: Like pods by a topic that they wait for; None are those that may wait for anything.
TopicFile = dict[Hashable, dict[LikePods, None]]


class Companions:
    """Waiting pods that all fail where one does, of one or several templates. Never empty."""

    __slots__ = ("_backing_off", "_ready", "files", "is_represented", "key", "label", "members")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        #: The same pods by what hints tell apart.
        self.members: dict[LikePods, None] = {}
        #: The files of plugins that have them.
        self.files: list[dict[Companions, None]] = []
        #: Whether one of them was woken to be tried for all.
        self.is_represented = False
        #: The event that woke it, or the last one.
        self.label = ""
        #: The one whose backoff ends first is at the head.
        self._backing_off = PodHeap()
        #: Those whose backoff was over when somebody asked, the oldest at the head.
        self._ready = PodHeap()

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._ready
        yield from self._backing_off

    def __contains__(self, uid: object) -> bool:
        return uid in self._backing_off or uid in self._ready

    def __len__(self) -> int:
        return len(self._backing_off) + len(self._ready)

    @property
    def span_templates(self) -> bool:
        """Whether hints may answer differently for some of them."""
        return len(self.members) > 1

    def push(self, queued: QueuedPod) -> None:
        self._backing_off.push(queued, queued.expiry)

    def remove(self, uid: str) -> None:
        (self._ready if uid in self._ready else self._backing_off).remove(uid)

    def first(self, now: float) -> QueuedPod | None:
        """Returns the one that would be tried before the others if all were woken."""
        while (queued := self._backing_off.head()) is not None and not queued.backs_off(now):
            self._backing_off.pop()
            self._ready.push(queued, 0)
        return self._ready.head() or queued
