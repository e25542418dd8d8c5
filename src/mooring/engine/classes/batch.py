"""Rows in the order in which like pods take them, kept up to date row by row."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

# Entries that are out of date are dropped when they come up. After this many changes per row
# it is cheaper to begin anew.
_CHANGES_PER_ROW = 4
# The same where rows have levels.
_CHANGES_PER_LEVEL_ROW = 1
# A ranking of few rows takes as long to make as many changes of it.
_LEAST_CHANGES = 64

#: The bytes that rankings take per row, at most: its total, and its turn, which is an integer of
#: its own at first and a reference after each change; its key among all rows; and two numbers where
#: it is one of some rows.
RANKED_BYTES = 8 + 40 + 8 * _CHANGES_PER_ROW + 8 + 16
#: The same where rows have levels: the level, and the key there at first and after each change.
LEVEL_BYTES = 8 + 40 * (1 + _CHANGES_PER_LEVEL_ROW)

# The total of a row that takes no such pod.
_NONE = -(2**62)
# The level of such a row.
_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Turns:
    """The visit order from some start: the turn of each row, and the row of each turn."""

    start: int
    of_row: NDArray[np.intp]
    turn_of: list[int]
    row_at: list[int]

    @classmethod
    def of(cls, order: NDArray[np.intp], rows: int, start: int) -> Turns:
        """From the rows in visit order, and how many rows there are in all."""
        row_at = np.roll(order, -start)
        of_row = np.zeros(rows, np.intp)
        of_row[row_at] = np.arange(len(row_at))
        return cls(start, of_row, of_row.tolist(), row_at.tolist())


class Batch:
    """The best row: the highest total, and of equals the first in the visit order.

    Rows of one total wait in a heap by their turn. An entry counts only while its row still has
    that total, so a change is one push, however many rows there are.
    """

    __slots__ = ("_buckets", "_now", "_ranked", "_tops", "_unread", "changes_left", "turns")

    def __init__(self, rows: NDArray[np.intp], totals: NDArray[np.int64], turns: Turns) -> None:
        """Ranks rows by their totals."""
        by_turn = np.full(len(turns.of_row), _NONE, np.int64)
        by_turn[turns.of_row[rows]] = totals
        ranked = np.flatnonzero(by_turn != _NONE)
        # The turns of equal totals stay in order. Mostly few totals differ, which sorts quickly.
        order = np.argsort(by_turn[ranked], kind="stable")
        ranked = ranked[order]
        ascending = by_turn[ranked]
        begins = np.flatnonzero(np.diff(ascending, prepend=_NONE))
        ends = np.append(begins[1:], len(ranked))[: len(begins)]
        levels = ascending[begins].tolist()
        #: The turns of rows by their total. A sorted list is a heap.
        self._buckets: dict[int, list[int]] = {}
        #: Where those begin and end that nobody has looked into: most totals are never the best.
        self._unread = dict(
            zip(levels, zip(begins.tolist(), ends.tolist(), strict=True), strict=True)
        )
        self._ranked = ranked
        self._tops: list[int] = [-level for level in reversed(levels)]
        now = np.full(len(turns.of_row), _NONE, np.int64)
        now[rows] = totals
        # Compact, and quick to read one by one.
        self._now = array("q", now.tobytes())
        #: After so many changes more, a new ranking is cheaper.
        self.changes_left = max(_CHANGES_PER_ROW * len(now), _LEAST_CHANGES)
        self.turns = turns

    def __len__(self) -> int:
        return len(self._now) - self._now.count(_NONE)

    def best(self) -> int | None:
        """The best row, or None if there is none."""
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
        """A row has this total now."""
        gain = total - self._now[row]
        if gain:
            self.move(row, gain)

    def drop(self, row: int) -> None:
        """A row does not take such pods any more."""
        self._now[row] = _NONE

    def move(self, row: int, gain: int) -> None:
        """A row is better or worse by so much."""
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
        """The turns of rows that had this total at first, from now on in their bucket."""
        begin, end = self._unread.pop(total)
        turns: list[int] = self._ranked[begin:end].tolist()
        self._buckets[total] = turns
        return turns


class DomainBatch:
    """The best of some rows, such as those of a domain, in the same order.

    One number per row has both its total and its turn, so that the largest is the best. It is
    above 0.
    """

    __slots__ = ("_place_of", "keys", "rows", "turns")

    def __init__(
        self,
        rows: NDArray[np.intp],
        fits: NDArray[np.bool_],
        totals: NDArray[np.int64],
        turns: Turns,
    ) -> None:
        """Ranks those of the rows that fit by their totals."""
        self.rows = rows
        self.turns = turns
        #: By place among the rows; that of a row that does not fit is below all others.
        self.keys = self._make_keys(rows, fits, totals)
        count = len(turns.turn_of)
        #: The place of each row, -1 for others; None if all rows are there, each at its number.
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
        """The best row, or None if there is none."""
        if not len(self.rows):
            return None
        place = self.keys.argmax()
        return None if self.keys.item(place) == _NONE else self.rows.item(place)

    def best_where(self, fits: NDArray[np.bool_]) -> int | None:
        """The same among those that fit, by place."""
        # Several times faster than to choose between two numbers for each row.
        keys = fits.astype(np.int64) * self.keys
        place = keys.argmax()
        return self.rows.item(place) if keys.item(place) > 0 else None

    def best_with(self, added: NDArray[np.int64], among: NDArray[np.intp] | None) -> int:
        """The best of some rows that fit, if so much more is added to their totals; None is all."""
        keys = added * len(self.turns.turn_of)
        keys += self.keys if among is None else self.keys[among]
        place = keys.argmax()
        return int(self.rows.item(place) if among is None else among.item(place))

    def put(self, row: int, total: int) -> None:
        """A row has this total now."""
        place = self._find_place(row)
        if place >= 0:
            turns = self.turns.turn_of
            self.keys[place] = (total + 1) * len(turns) - turns[row]

    def put_together(
        self, rows: NDArray[np.intp], fits: NDArray[np.bool_], totals: NDArray[np.int64]
    ) -> None:
        """Rows have these totals now, if they fit."""
        keys = self._make_keys(rows, fits, totals)
        if self._place_of is None:
            self.keys[rows] = keys
            return
        places = self._place_of[rows]
        self.keys[places[places >= 0]] = keys[places >= 0]

    def move(self, row: int, gain: int) -> None:
        """A row is better or worse by so much."""
        place = row if self._place_of is None else self._place_of.item(row)
        if place >= 0:
            self.keys[place] += gain * len(self.turns.turn_of)

    def drop(self, row: int) -> None:
        """A row does not take such pods any more."""
        place = self._find_place(row)
        if place >= 0:
            self.keys[place] = _NONE

    def _find_place(self, row: int) -> int:
        return row if self._place_of is None else self._place_of.item(row)


class LevelBatch:
    """The best row where few numbers are added to the totals of a ranking, one for each level.

    The rows of a level wait in a heap by their key in the ranking. An entry counts only while its
    row still has that key and that level. So a change is one push, and the best row is the best of
    those that come first in their levels.
    """

    __slots__ = (
        "_counts",
        "_heaps",
        "_level_of",
        "_levels",
        "_occurring",
        "changes_left",
        "generation",
        "places",
        "ranking",
    )

    def __init__(self, ranking: DomainBatch, places: NDArray[np.intp], generation: int) -> None:
        """All rows by their ranking, and the place of each among the levels, as of a generation."""
        self.ranking, self.places, self.generation = ranking, places, generation
        self.changes_left = max(_CHANGES_PER_LEVEL_ROW * len(places), _LEAST_CHANGES)
        rows = np.flatnonzero(ranking.keys != _NONE)
        level_of = np.full(len(places), _NOWHERE, np.intp)
        level_of[rows] = places[rows]
        self._level_of: list[int] = level_of.tolist()
        order = rows[np.lexsort((-ranking.keys[rows], places[rows]))]
        levels = places[order]
        begins = np.flatnonzero(np.diff(levels, prepend=_NOWHERE))
        parts = np.split(-ranking.keys[order], begins[1:])
        #: The keys of each level, negative: the largest comes first. A sorted list is a heap.
        self._heaps: dict[int, list[int]] = {
            level: part.tolist()
            for level, part in zip(levels[begins].tolist(), parts, strict=False)
        }
        #: How many rows each level has.
        self._counts = {level: len(part) for level, part in self._heaps.items()}
        self._levels: list[int] = []
        self._occurring: NDArray[np.intp] | None = None

    @property
    def occurring(self) -> NDArray[np.intp]:
        """The levels that rows have which fit, in order."""
        if self._occurring is None:
            self._levels = sorted(self._counts)
            self._occurring = np.array(self._levels, np.intp)
        return self._occurring

    def catch_up(self, rows: Iterable[int], generation: int) -> None:
        """Takes in rows that may have another key or level, as of a generation."""
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
        self.generation = generation

    def _count(self, level: int, amount: int) -> None:
        """A level has a row more or fewer."""
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
        """The best row if so much is added to the totals of the levels that occur, in order."""
        ranking, level_of, heaps = self.ranking, self._level_of, self._heaps
        read, row_at = ranking.keys.item, ranking.turns.row_at
        size = len(ranking.turns.turn_of)
        best = 0
        for level, number in zip(self._levels, added, strict=True):
            heap = heaps[level]
            # A key has the turn of its row.
            row = row_at[heap[0] % size]
            while read(row) != -heap[0] or level_of[row] != level:
                heappop(heap)
                row = row_at[heap[0] % size]
            best = max(best, number * size - heap[0])
        return row_at[-best % size]
