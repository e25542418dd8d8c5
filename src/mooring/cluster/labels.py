"""Node labels as columns: per key, a code per row. The same codes are the topology domains."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from mooring.objects.node_selector import parse_int64
from mooring.objects.selector import Labels

from .arrays import frozen, grown
from .recent import Recent
from .vocabulary import ABSENT, Vocabulary

# Columns that nobody but this cache holds on to may take so many bytes.
_MOST_BYTES = 16 * 2**20
_FEWEST_COLUMNS = 64


class LabelColumn:
    """The values of one label key: `codes[row]`, ABSENT where a node lacks the key."""

    def __init__(self, key: str, nothing: NDArray[np.intp]) -> None:
        self.key = key
        #: Of a key that no node has, every column has the same array, which is not written.
        self.codes: NDArray[np.intp] = nothing
        self.vocabulary: Vocabulary[str] = Vocabulary()
        #: The number of rows that have the key.
        self.filled = 0
        self._numbers: NDArray[np.int64] = np.zeros(0, np.int64)
        self._numeric: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._numbers_until = 0

    def set(self, row: int, value: str | None) -> None:
        old = int(self.codes[row])
        if not self.codes.flags.writeable:
            if value is None:
                return
            self.codes = self.codes.copy()
        self.codes[row] = ABSENT if value is None else self.vocabulary.acquire(value)
        self.filled += value is not None
        if old != ABSENT:
            self.filled -= 1
            self.vocabulary.release(old)

    def value(self, row: int) -> str | None:
        code = int(self.codes[row])
        return None if code == ABSENT else self.vocabulary.values[code]

    def grow(self, nothing: NDArray[np.intp]) -> None:
        if self.codes.flags.writeable:
            self.codes = grown(self.codes, len(nothing), ABSENT)
        else:
            self.codes = nothing

    def numbers(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Per code its value as an integer, and whether it is one. The last place is ABSENT's."""
        self._numbers = grown(self._numbers, len(self.vocabulary) + 1)
        self._numeric = grown(self._numeric, len(self.vocabulary) + 1, False)
        for code in self.vocabulary.given_since(self._numbers_until):
            number = parse_int64(self.vocabulary.values[code])
            self._numbers[code] = number or 0
            self._numeric[code] = number is not None
        self._numbers_until = self.vocabulary.moment
        return self._numbers, self._numeric


class LabelColumns:
    """The label columns in use, and which rows have which key.

    A key gets its column when a decision first asks for it. A column is kept up to date for as long
    as somebody holds it: a count of pods per domain, an answer for like pods, or the cache of those
    that were asked for lately.
    """

    def __init__(self, capacity: int) -> None:
        self._rows: dict[str, set[int]] = {}
        self._columns: WeakValueDictionary[str, LabelColumn] = WeakValueDictionary()
        self._recent: Recent[str, LabelColumn] = Recent(_FEWEST_COLUMNS)
        self.grow(capacity)

    def __contains__(self, key: str) -> bool:
        """Whether any node has a key."""
        return key in self._rows

    def column(self, key: str, labels: Callable[[int], Labels]) -> LabelColumn:
        """The column of a key; a new one is filled from the labels of the rows that have it."""
        column = self._recent.find(key)
        if column is not None:
            return column
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = LabelColumn(key, self._nothing)
            for row in self._rows.get(key, ()):
                column.set(row, labels(row)[key])
        if column.filled:
            self._recent.put(key, column)
        return column

    def set_row(self, row: int, before: Labels, labels: Labels) -> None:
        """A row has other labels than before; none where it has no node."""
        for key, old in before.items():
            if labels.get(key) != old:
                self._set(key, row, labels.get(key))
        for key, value in labels.items():
            if key not in before:
                self._set(key, row, value)

    def _set(self, key: str, row: int, value: str | None) -> None:
        rows = self._rows.setdefault(key, set())
        if value is None:
            rows.discard(row)
            if not rows:
                del self._rows[key]
        else:
            rows.add(row)
        column = self._columns.get(key)
        if column is not None:
            column.set(row, value)

    def grow(self, capacity: int) -> None:
        self._nothing = frozen(np.full(capacity, ABSENT, np.intp))
        self._recent.limit = max(_FEWEST_COLUMNS, _MOST_BYTES // self._nothing.nbytes)
        for column in self._columns.values():
            column.grow(self._nothing)

    def sweep(self) -> None:
        """Lets go of columns that nobody asked for lately."""
        self._recent.sweep()

    @property
    def columns(self) -> tuple[LabelColumn, ...]:
        """The columns that are kept up to date."""
        return tuple(self._columns.values())

    @property
    def rows(self) -> dict[str, set[int]]:
        """Per key the rows that have it."""
        return self._rows
