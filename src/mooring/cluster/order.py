"""The order in which nodes are visited: zone by zone in turn, so that ties spread over zones."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

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
        """Per row its place in the list; rows that are not listed have place 0."""
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
