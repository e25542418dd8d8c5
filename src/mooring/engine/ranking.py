"""Rows in the order in which like pods take them, kept up to date row by row."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

# Entries that are out of date are dropped when they come up. After this many changes per row
# it is cheaper to begin anew.
_CHANGES_PER_ROW = 4


class Ranking:
    """The best row: the highest total, and of equals the first in the visit order.

    Rows of one total wait in a heap by their turn. An entry counts only while its row still has
    that total, so a change is one push, however many rows there are.
    """

    __slots__ = ("_buckets", "_changes", "_now", "_row_at", "_tops", "_turns")

    def __init__(
        self, rows: NDArray[np.intp], totals: NDArray[np.int64], turns: NDArray[np.intp]
    ) -> None:
        """Ranks rows by their totals; `turns` has the place of each row in the visit order."""
        order = np.lexsort((turns[rows], totals))
        ranked, ascending = turns[rows][order], totals[order]
        levels, begins = np.unique(ascending, return_index=True)
        parts = np.split(ranked, begins[1:]) if len(levels) else []
        #: A sorted list is a heap.
        self._buckets: dict[int, list[int]] = {
            level: part.tolist() for level, part in zip(levels.tolist(), parts, strict=True)
        }
        self._tops: list[int] = [-level for level in reversed(levels.tolist())]
        self._now: dict[int, int] = dict(zip(rows.tolist(), totals.tolist(), strict=True))
        self._turns: list[int] = turns.tolist()
        self._row_at: dict[int, int] = {self._turns[row]: row for row in self._now}
        self._changes = 0

    def __len__(self) -> int:
        return len(self._now)

    @property
    def is_worn(self) -> bool:
        """Whether so much has changed that a new ranking is cheaper."""
        return self._changes > _CHANGES_PER_ROW * len(self._turns)

    def best(self) -> int | None:
        """The best row, or None if there is none."""
        tops, buckets, now, row_at = self._tops, self._buckets, self._now, self._row_at
        while tops:
            total = -tops[0]
            turns = buckets[total]
            while turns:
                row = row_at[turns[0]]
                if now.get(row) == total:
                    return row
                heappop(turns)
            heappop(tops)
            del buckets[total]
        return None

    def put(self, row: int, total: int) -> None:
        """A row has this total now."""
        if self._now.get(row) == total:
            return
        self._now[row] = total
        self._changes += 1
        turn = self._turns[row]
        self._row_at[turn] = row
        turns = self._buckets.get(total)
        if turns is None:
            self._buckets[total] = [turn]
            heappush(self._tops, -total)
        else:
            heappush(turns, turn)

    def drop(self, row: int) -> None:
        """A row does not take such pods any more."""
        self._now.pop(row, None)
