"""Sets of waiting pods: those that every hint answers alike, and those that fail together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from .entity import Entity, EntityKey
from .entity_heap import EntityHeap

#: What like pods share: template, namespace, labels, who keeps them waiting, what makes them fail
#: alike, and whatever else the hints of these read.
Kind = tuple[Hashable, ...]


class LikePods:
    """Waiting pods that every hint answers alike. Never empty while it is filed."""

    __slots__ = ("_pods", "companions", "files", "kind", "topics", "unit")

    def __init__(self, kind: Kind, companions: Companions | None) -> None:
        self.kind = kind
        #: They and all others that fail where one of them does; None if nobody knows.
        self.companions = companions
        self._pods: dict[EntityKey, Entity] = {}
        #: What plugins file in their place: their companions, or themselves.
        self.unit: Unit = self if companions is None else companions
        #: The files that have them.
        self.files: list[dict[Unit, None]] = []
        #: Each topic they are filed under, and where.
        self.topics: list[tuple[TopicFile, Hashable]] = []

    def __iter__(self) -> Iterator[Entity]:
        return iter(self._pods.values())

    def __contains__(self, key: object) -> bool:
        return key in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    def push(self, queued: Entity) -> None:
        self._pods[queued.key] = queued
        if self.companions is not None:
            self.companions.push(queued)

    def remove(self, key: EntityKey) -> None:
        if self.companions is not None:
            self.companions.remove(key)
        del self._pods[key]


class Companions:
    """Waiting pods that all fail where one does, of one or several templates. Never empty."""

    __slots__ = ("_backing_off", "_ready", "files", "is_represented", "key", "label", "members")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        #: The same pods by what hints tell apart.
        self.members: dict[LikePods, None] = {}
        #: The files that have them.
        self.files: list[dict[Unit, None]] = []
        #: Whether one of them was woken to be tried for all: its representative.
        self.is_represented = False
        #: The event that woke it, or the last one.
        self.label = ""
        #: The one whose backoff ends first is at the head.
        self._backing_off = EntityHeap()
        #: Those whose backoff was over when somebody asked, the oldest at the head.
        self._ready = EntityHeap()

    def __contains__(self, key: object) -> bool:
        return key in self._backing_off or key in self._ready

    @property
    def span_templates(self) -> bool:
        """Whether hints may answer differently for some of them."""
        return len(self.members) > 1

    def push(self, queued: Entity) -> None:
        self._backing_off.push(queued, queued.expiry)

    def remove(self, key: EntityKey) -> None:
        (self._ready if key in self._ready else self._backing_off).remove(key)

    def first(self, now: float) -> Entity | None:
        """Returns the one that would be tried before the others if all were woken."""
        while (queued := self._backing_off.head()) is not None and not queued.backs_off(now):
            self._backing_off.pop()
            self._ready.push(queued, 0)
        return self._ready.head() or queued


#: What plugins keep waiting.
Unit = LikePods | Companions
#: Units by a topic that they wait for; None are those that may wait for anything.
TopicFile = dict[Hashable, dict[Unit, None]]
