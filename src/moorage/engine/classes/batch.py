"""Rankings of rows for a class of like pods, kept up to date row by row."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.changes import ChangeLog
from moorage.cluster.row_view import LogReader

# An outdated entry stays until it is the first of its heap. After this many changes per row, a new
# ranking takes less time than dropping these entries.
_CHANGES_PER_ROW = 4
# The number of changes per row after which a ranking by levels is made anew.
_CHANGES_PER_LEVEL_ROW = 1
# A ranking of few rows is kept for at least so many changes: making it takes as long as they do.
_LEAST_CHANGES = 64

#: The bytes that rankings take per row, at most. `Batch` takes 8 for the total, 40 for the turn (an
#: integer and a reference to it) and 8 for the reference after each change. `DomainBatch` takes 8
#: for the key among all rows, and 16 for the key and the position among some rows.
RANKED_BYTES = 8 + 40 + 8 * _CHANGES_PER_ROW + 8 + 16
#: The bytes that `LevelBatch` adds per row, at most: 8 for the level, and 40 for the key, at first
#: and after each change.
LEVEL_BYTES = 8 + 40 * (1 + _CHANGES_PER_LEVEL_ROW)

# The total of a row on which such pods do not fit.
_NONE = -(2**62)
# The level of such a row.
_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Turns:
    """The visit order from a start: the turn of each row, and the row of each turn."""

    start: int
    of_row: NDArray[np.intp]
    turn_of: list[int]
    row_at: list[int]

    @classmethod
    def of(cls, order: NDArray[np.intp], rows: int, start: int) -> Turns:
        """Makes it from the rows in visit order and the number of all rows."""
        row_at = np.roll(order, -start)
        of_row = np.zeros(rows, np.intp)
        of_row[row_at] = np.arange(len(row_at))
        return cls(start, of_row, of_row.tolist(), row_at.tolist())


class Batch:
    """Finds the best row: the highest total, and of equal totals the first in the visit order.

    The rows of each total are in a heap, by their turn. An entry is valid only while its row has
    that total. So a change is one push, however many rows there are.
    """

    __slots__ = ("_buckets", "_now", "_ranked", "_tops", "_unread", "changes_left", "turns")

    def __init__(self, rows: NDArray[np.intp], totals: NDArray[np.int64], turns: Turns) -> None:
        """Ranks rows by their totals."""
        by_turn = np.full(len(turns.of_row), _NONE, np.int64)
        by_turn[turns.of_row[rows]] = totals
        ranked = np.flatnonzero(by_turn != _NONE)
        # A stable sort keeps the turns of equal totals in order. It is fast, because there are
        # mostly few distinct totals.
        order = np.argsort(by_turn[ranked], kind="stable")
        ranked = ranked[order]
        ascending = by_turn[ranked]
        begins = np.flatnonzero(np.diff(ascending, prepend=_NONE))
        ends = np.append(begins[1:], len(ranked))[: len(begins)]
        levels = ascending[begins].tolist()
        #: The turns of rows by their total. A sorted list is a heap.
        self._buckets: dict[int, list[int]] = {}
        #: By total, where its turns begin and end in `_ranked`, until they are first read: most
        #: totals are never the best.
        self._unread = dict(
            zip(levels, zip(begins.tolist(), ends.tolist(), strict=True), strict=True)
        )
        self._ranked = ranked
        self._tops: list[int] = [-level for level in reversed(levels)]
        now = np.full(len(turns.of_row), _NONE, np.int64)
        now[rows] = totals
        # An array is compact, and single values are read fast.
        self._now = array("q", now.tobytes())
        #: After so many more changes, a new ranking takes less time.
        self.changes_left = max(_CHANGES_PER_ROW * len(now), _LEAST_CHANGES)
        self.turns = turns

    def __len__(self) -> int:
        return len(self._now) - self._now.count(_NONE)

    def best(self) -> int | None:
        """Returns the best row; None if there is none."""
        tops, buckets, now, row_at = self._tops, self._buckets, self._now, self.turns.row_at
        while tops:
            total = -tops[0]
            turns = buckets.get(total)
            if turns is None:
                turns = self._read(total)
            while turns:
                row = row_at[turns[0]]
                if now[row] == total:
                    return row
                heappop(turns)
            heappop(tops)
            del buckets[total]
        return None

    def put(self, row: int, total: int) -> None:
        """Sets the total of a row."""
        gain = total - self._now[row]
        if gain:
            self.move(row, gain)

    def drop(self, row: int) -> None:
        """Removes a row on which such pods no longer fit."""
        self._now[row] = _NONE

    def move(self, row: int, gain: int) -> None:
        """Adds a gain, which may be negative, to the total of a row."""
        total = self._now[row] = self._now[row] + gain
        self.changes_left -= 1
        turns = self._buckets.get(total)
        if turns is None:
            if total in self._unread:
                turns = self._read(total)
            else:
                turns = self._buckets[total] = []
                heappush(self._tops, -total)
        heappush(turns, self.turns.turn_of[row])

    def _read(self, total: int) -> list[int]:
        """Moves the turns of rows that had this total at first to a bucket; returns the bucket."""
        begin, end = self._unread.pop(total)
        turns: list[int] = self._ranked[begin:end].tolist()
        self._buckets[total] = turns
        return turns


class DomainBatch:
    """Finds the best of some rows, such as those of a domain, in the order of `Batch`.

    One number per row, its key, contains its total and its turn: the row with the largest key is
    the best. The key of a row that fits is above 0.
    """

    __slots__ = ("_place_of", "keys", "rows", "turns")

    def __init__(
        self,
        rows: NDArray[np.intp],
        fits: NDArray[np.bool_],
        totals: NDArray[np.int64],
        turns: Turns,
    ) -> None:
        """Ranks the rows that fit by their totals."""
        self.rows = rows
        self.turns = turns
        #: The keys by position in `rows`. The key of a row that does not fit is below all others.
        self.keys = self._make_keys(rows, fits, totals)
        count = len(turns.turn_of)
        #: The position of each row in `rows`, -1 for others. None if `rows` has all rows, each at
        #: its number.
        self._place_of: NDArray[np.intp] | None = None
        if len(rows) < count:
            self._place_of = np.full(count, -1, np.intp)
            self._place_of[rows] = np.arange(len(rows))

    def _make_keys(
        self, rows: NDArray[np.intp], fits: NDArray[np.bool_], totals: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        keys = (totals + 1) * len(self.turns.turn_of)
        keys -= self.turns.of_row[rows]
        return np.where(fits, keys, _NONE)

    def best(self) -> int | None:
        """Returns the best row; None if there is none."""
        if not len(self.rows):
            return None
        place = self.keys.argmax()
        return None if self.keys.item(place) == _NONE else self.rows.item(place)

    def best_where(self, fits: NDArray[np.bool_]) -> int | None:
        """Returns the best row among those that fit, given by position; None if there is none."""
        # A product is several times faster than `np.where`.
        keys = fits.astype(np.int64) * self.keys
        place = keys.argmax()
        return self.rows.item(place) if keys.item(place) > 0 else None

    def best_with(self, added: NDArray[np.int64], among: NDArray[np.intp] | None) -> int:
        """Returns the best of some rows after numbers are added to their totals.

        All of these rows fit. None stands for all rows.
        """
        keys = added * len(self.turns.turn_of)
        keys += self.keys if among is None else self.keys[among]
        place = keys.argmax()
        return int(self.rows.item(place) if among is None else among.item(place))

    def put(self, row: int, total: int) -> None:
        """Sets the total of a row."""
        place = self._find_place(row)
        if place >= 0:
            turns = self.turns.turn_of
            self.keys[place] = (total + 1) * len(turns) - turns[row]

    def put_together(
        self, rows: NDArray[np.intp], fits: NDArray[np.bool_], totals: NDArray[np.int64]
    ) -> None:
        """Sets the totals of many rows, and which of them fit."""
        keys = self._make_keys(rows, fits, totals)
        if self._place_of is None:
            self.keys[rows] = keys
            return
        places = self._place_of[rows]
        self.keys[places[places >= 0]] = keys[places >= 0]

    def move(self, row: int, gain: int) -> None:
        """Adds a gain, which may be negative, to the total of a row."""
        place = row if self._place_of is None else self._place_of.item(row)
        if place >= 0:
            self.keys[place] += gain * len(self.turns.turn_of)

    def drop(self, row: int) -> None:
        """Removes a row on which such pods no longer fit."""
        place = self._find_place(row)
        if place >= 0:
            self.keys[place] = _NONE

    def _find_place(self, row: int) -> int:
        return row if self._place_of is None else self._place_of.item(row)


class LevelBatch:
    """Finds the best row after a number is added to each total of a ranking.

    There are few such numbers: all rows of a level get the same one. The rows of a level are in a
    heap, by their key in the ranking. An entry is valid only while its row has that key and that
    level. So a change is one push, and the best row is the best of the first rows of all levels.
    """

    __slots__ = (
        "_counts",
        "_heaps",
        "_level_of",
        "_levels",
        "_occurring",
        "changes_left",
        "places",
        "ranking",
        "reader",
    )

    def __init__(self, ranking: DomainBatch, places: NDArray[np.intp], log: ChangeLog) -> None:
        """Sorts all rows by level and key; `places` has the present level of each row."""
        self.ranking, self.places, self.reader = ranking, places, LogReader(log)
        self.changes_left = max(_CHANGES_PER_LEVEL_ROW * len(places), _LEAST_CHANGES)
        rows = np.flatnonzero(ranking.keys != _NONE)
        level_of = np.full(len(places), _NOWHERE, np.intp)
        level_of[rows] = places[rows]
        self._level_of: list[int] = level_of.tolist()
        order = rows[np.lexsort((-ranking.keys[rows], places[rows]))]
        levels = places[order]
        begins = np.flatnonzero(np.diff(levels, prepend=_NOWHERE))
        parts = np.split(-ranking.keys[order], begins[1:])
        #: The negated keys of each level, so that the largest key comes first. A sorted list is a
        #: heap.
        self._heaps: dict[int, list[int]] = {
            level: part.tolist()
            for level, part in zip(levels[begins].tolist(), parts, strict=False)
        }
        #: The number of rows of each level.
        self._counts = {level: len(part) for level, part in self._heaps.items()}
        self._levels: list[int] = []
        self._occurring: NDArray[np.intp] | None = None

    @property
    def occurring(self) -> NDArray[np.intp]:
        """Returns the levels of the rows that fit, in order."""
        if self._occurring is None:
            self._levels = sorted(self._counts)
            self._occurring = np.array(self._levels, np.intp)
        return self._occurring

    def catch_up(self, rows: Iterable[int]) -> None:
        """Updates rows whose key or level may have changed."""
        keys, level_of = self.ranking.keys, self._level_of
        for row in rows:
            key = keys.item(row)
            level = _NOWHERE if key == _NONE else self.places.item(row)
            if level != level_of[row]:
                self._count(level_of[row], -1)
                self._count(level, 1)
                level_of[row] = level
            if level != _NOWHERE:
                heappush(self._heaps[level], -key)
                self.changes_left -= 1

    def _count(self, level: int, amount: int) -> None:
        """Adds (1) or subtracts (-1) a row of a level."""
        if level == _NOWHERE:
            return
        count = self._counts.get(level, 0) + amount
        if not count:
            del self._counts[level], self._heaps[level]
            self._occurring = None
            return
        if level not in self._counts:
            self._heaps[level] = []
            self._occurring = None
        self._counts[level] = count

    def best(self, added: Sequence[int]) -> int:
        """Returns the best row after a number is added to the totals of each level.

        The numbers are in the order of `occurring`, which the caller has read.
        """
        ranking, level_of, heaps = self.ranking, self._level_of, self._heaps
        read, row_at = ranking.keys.item, ranking.turns.row_at
        size = len(ranking.turns.turn_of)
        best = 0
        for level, number in zip(self._levels, added, strict=True):
            heap = heaps[level]
            # The turn of a row can be computed from its key.
            row = row_at[heap[0] % size]
            while read(row) != -heap[0] or level_of[row] != level:
                heappop(heap)
                row = row_at[heap[0] % size]
            best = max(best, number * size - heap[0])
        return row_at[-best % size]
