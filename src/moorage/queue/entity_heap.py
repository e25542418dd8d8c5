"""A heap of waiting entities, from which any entity can be removed."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from moorage.documents.errors import STOPPED

from .entity import Entity, EntityKey

_Item = tuple[Any, int, int, Entity]


def _give_up(error: BaseException) -> None:
    raise error


class EntityHeap:
    """Entities by sort key, ties by arrival.

    An entity that is removed leaves an item behind, which is skipped later. If sort keys cannot be
    compared, `repair` is called, which must `reorder` the heap.
    """

    __slots__ = ("_items", "_live", "_repair", "_serials")

    def __init__(self, repair: Callable[[BaseException], None] = _give_up) -> None:
        self._repair = repair
        self._items: list[_Item] = []
        self._live: dict[EntityKey, _Item] = {}
        # Unique, so that comparing two items never reaches the entities.
        self._serials = count()

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, key: object) -> bool:
        return key in self._live

    def push(self, queued: Entity, order: Any) -> None:
        """Adds an entity that is not in the heap."""
        item = self._live[queued.key] = (order, queued.arrival, next(self._serials), queued)
        try:
            heappush(self._items, item)
        except STOPPED as error:  # comparing sort keys is a plugin's code
            self._repair(error)

    def remove(self, key: EntityKey) -> None:
        """Removes an entity that is in the heap."""
        del self._live[key]
        if len(self._items) > 2 * len(self._live):
            self._tidy()

    def reorder(self, order: Callable[[Entity], Any]) -> None:
        """Orders all entities by another sort key."""
        for key, (_, arrival, serial, queued) in self._live.items():
            self._live[key] = order(queued), arrival, serial, queued
        self._tidy()

    def _tidy(self) -> None:
        self._items = list(self._live.values())
        try:
            heapify(self._items)
        except STOPPED as error:  # comparing sort keys is a plugin's code
            self._repair(error)

    def pop(self) -> Entity | None:
        """Removes and returns the first entity."""
        try:
            return self._pop()
        except STOPPED as error:  # comparing sort keys is a plugin's code
            self._repair(error)
        return self._pop()

    def _pop(self) -> Entity | None:
        items, live = self._items, self._live
        while items:
            item = heappop(items)
            queued = item[3]
            if live.get(queued.key) is item:
                del live[queued.key]
                return queued
        return None

    def head(self) -> Entity | None:
        """Returns the first entity without removing it."""
        item = self._first()
        return item[3] if item else None

    def head_key(self) -> Any:
        """Returns the smallest sort key, or None."""
        item = self._first()
        return item[0] if item else None

    def is_before(self, other: EntityHeap) -> bool:
        """Whether its first entity comes before that of another heap; neither may be empty."""
        try:
            return self._find_order() < other._find_order()
        except STOPPED as error:  # comparing sort keys is a plugin's code
            self._repair(error)
        return self._find_order() < other._find_order()

    def _find_order(self) -> tuple[Any, int]:
        item = self._first()
        assert item is not None, "the heap is not empty"
        return item[0], item[1]

    def _first(self) -> _Item | None:
        try:
            self._drop_removed()
        except STOPPED as error:  # comparing sort keys is a plugin's code
            self._repair(error)
            self._drop_removed()
        return self._items[0] if self._items else None

    def _drop_removed(self) -> None:
        while self._items and self._live.get(self._items[0][3].key) is not self._items[0]:
            heappop(self._items)
