"""Node labels as columns: per key, a code per row. The same codes are the topology domains."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from mooring.objects.node_selector import parse_int64
from mooring.objects.selector import Labels

from .arrays import grown
from .vocabulary import ABSENT, Vocabulary


class LabelColumn:
    """The values of one label key: `codes[row]`, ABSENT where a node lacks the key."""

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.codes: NDArray[np.intp] = np.full(capacity, ABSENT, np.intp)
        self.vocabulary: Vocabulary[str] = Vocabulary()
        #: The number of rows that have the key.
        self.filled = 0
        self._numbers: NDArray[np.int64] = np.zeros(8, np.int64)
        self._numeric: NDArray[np.bool_] = np.zeros(8, np.bool_)
        self._numbers_until = 0

    def set(self, row: int, value: str | None) -> None:
        old = int(self.codes[row])
        self.codes[row] = ABSENT if value is None else self.vocabulary.acquire(value)
        self.filled += value is not None
        if old != ABSENT:
            self.filled -= 1
            self.vocabulary.release(old)

    def value(self, row: int) -> str | None:
        code = int(self.codes[row])
        return None if code == ABSENT else self.vocabulary.values[code]

    def grow(self, capacity: int) -> None:
        self.codes = grown(self.codes, capacity, ABSENT)

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
    """The label columns in use. A key gets its column when a decision first asks for it."""

    def __init__(self) -> None:
        self._columns: dict[str, LabelColumn] = {}

    def column(
        self, key: str, capacity: int, labels: Callable[[], Iterable[tuple[int, Labels]]]
    ) -> LabelColumn:
        """The column of a key; a new one is filled from the labels of every row."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = LabelColumn(key, capacity)
            for row, of_row in labels():
                column.set(row, of_row.get(key))
        return column

    def set_row(self, row: int, labels: Labels) -> None:
        for key, column in self._columns.items():
            column.set(row, labels.get(key))

    def grow(self, capacity: int) -> None:
        for column in self._columns.values():
            column.grow(capacity)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._columns)
