"""Container images, and the visit order of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from moorage.objects.node import ContainerImage

from .arrays import grow_to


class Image:
    """An image by one of its names. Its size is that of the first node that reports it."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.rows: set[int] = set()
        self._present: NDArray[np.bool_] | None = None

    def put(self, row: int) -> None:
        self.rows.add(row)
        if self._present is not None:
            self._present = grow_to(self._present, row + 1, False)
            self._present[row] = True

    def take(self, row: int) -> None:
        self.rows.discard(row)
        if self._present is not None:
            self._present[row] = False

    def present(self, capacity: int) -> NDArray[np.bool_]:
        """Returns whether each row has it: a column made when first asked for."""
        if self._present is None:
            self._present = np.zeros(capacity, np.bool_)
            self._present[list(self.rows)] = True
        elif len(self._present) < capacity:
            self._present = grow_to(self._present, capacity, False)
        return self._present


class Images:
    """All images on all nodes."""

    def __init__(self) -> None:
        self._images: dict[str, Image] = {}

    def get(self, name: str) -> Image | None:
        return self._images.get(name)

    def put(self, row: int, images: Iterable[ContainerImage]) -> None:
        for name, size in _names(images):
            image = self._images.get(name)
            if image is None:
                image = self._images[name] = Image(size)
            image.put(row)

    def take(self, row: int, images: Iterable[ContainerImage]) -> None:
        for name, _ in _names(images):
            image = self._images.get(name)
            if image is not None:
                image.take(row)
                if not image.rows:
                    del self._images[name]

    def __iter__(self) -> Iterator[tuple[str, Image]]:
        return iter(self._images.items())


def _names(images: Iterable[ContainerImage]) -> Iterator[tuple[str, int]]:
    for image in images:
        for name in image.names or ():
            yield name, image.size_bytes


Zone = tuple[str, str]


class VisitOrder:
    """Nodes in order of arrival within their zone, zones in order of their first node.

    Moving a node to another zone does not reorder the list until a node comes or goes.
    """

    def __init__(self) -> None:
        self._zones: dict[Zone, dict[int, None]] = {}
        self._zone_of: dict[int, Zone] = {}
        self._rows: NDArray[np.intp] | None = None
        self._ranks: NDArray[np.intp] | None = None

    def add(self, row: int, zone: Zone) -> None:
        self._enter(row, zone)
        self._rows = None

    def remove(self, row: int) -> None:
        self._leave(row)
        self._rows = None

    def move(self, row: int, zone: Zone) -> None:
        if self._zone_of[row] != zone:
            rows = self.rows()
            self._leave(row)
            self._enter(row, zone)
            self._rows = rows

    def rows(self) -> NDArray[np.intp]:
        if self._rows is None:
            turns = zip_longest(*self._zones.values())
            listed = [row for turn in turns for row in turn if row is not None]
            self._rows = np.array(listed, np.intp)
            self._ranks = None
        return self._rows

    def ranks(self, capacity: int) -> NDArray[np.intp]:
        """Returns the position of each row in the list; rows that are not listed have 0."""
        rows = self.rows()
        if self._ranks is None:
            self._ranks = np.zeros(capacity, np.intp)
            self._ranks[rows] = np.arange(len(rows))
        return self._ranks

    def _enter(self, row: int, zone: Zone) -> None:
        self._zones.setdefault(zone, {})[row] = None
        self._zone_of[row] = zone

    def _leave(self, row: int) -> None:
        zone = self._zone_of.pop(row)
        members = self._zones[zone]
        del members[row]
        if not members:
            del self._zones[zone]
