"""Labels and other values of nodes as codes: distinct values, and a code per row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from moorage.objects.node import HOSTNAME, ZONE
from moorage.objects.node_selector import parse_int64
from moorage.objects.selector import Labels

from .arrays import freeze, grow_to
from .derived import Recent

T = TypeVar("T", bound=Hashable)

ABSENT = -1


def find_codes(codes: NDArray[Any], wanted: list[int], count: int) -> NDArray[np.bool_]:
    """Returns where codes below a count are wanted ones, and not ABSENT."""
    # The last place is that of ABSENT.
    is_wanted = np.zeros(count + 1, np.bool_)
    is_wanted[wanted] = True
    return is_wanted[codes]


# Rules come from pod templates. Templates come and go, so the oldest rule makes room.
_MOST_RULES = 512

# How many codes that were given out are remembered beyond one for each value, before tables are
# better made again.
_MOST_GIVEN = 1_024


class Vocabulary(Generic[T]):
    """Codes for the values in use. A code is freed when its last user leaves, and then reused."""

    def __init__(self, *always: T) -> None:
        """The first codes stand for some values as long as it exists, whether used or not."""
        self._codes: dict[T, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []
        #: The value of each code; a code that is not in use keeps its last value.
        self.values: list[T] = []
        # The codes in the order of being given out, so that tables over codes can catch up.
        self._given: list[int] = []
        self._forgotten = 0
        self._judged: Recent[Callable[[T], int], _Table[T]] | None = None
        for value in always:
            self.acquire(value)

    def __len__(self) -> int:
        """Returns the number of codes; every code is below it."""
        return len(self.values)

    def code(self, value: T) -> int:
        return self._codes.get(value, ABSENT)

    def acquire(self, value: T) -> int:
        code = self._codes.get(value, ABSENT)
        if code == ABSENT:
            code = self._give(value)
        self._uses[code] += 1
        return code

    def release(self, code: int) -> None:
        self._uses[code] -= 1
        if self._uses[code] == 0:
            del self._codes[self.values[code]]
            self._free.append(code)

    @property
    def moment(self) -> int:
        """Returns how many codes were given out so far."""
        return self._forgotten + len(self._given)

    def given_since(self, moment: int) -> Iterable[int]:
        """Returns the codes whose meaning has changed since a moment; all after a long time."""
        if moment < self._forgotten:
            return range(len(self.values))
        return set(self._given[moment - self._forgotten :])

    def in_use(self) -> dict[T, int]:
        return self._codes

    def judge(self, rule: Callable[[T], int]) -> NDArray[np.int64]:
        """Returns a rule's answer for each value, by code. Equal rules share an updated table."""
        if self._judged is None:
            self._judged = Recent(_MOST_RULES)
        table = self._judged.find(rule)
        if table is None:
            table = _Table(rule)
            self._judged.put(rule, table)
        return table.caught_up(self)

    def sweep(self) -> None:
        """Drops the rules that were not asked for lately."""
        if self._judged is not None:
            self._judged.sweep()

    def _give(self, value: T) -> int:
        if self._free:
            code = self._free.pop()
            self.values[code] = value
        else:
            code = len(self.values)
            self.values.append(value)
            self._uses.append(0)
        self._codes[value] = code
        self._given.append(code)
        if len(self._given) > len(self.values) + _MOST_GIVEN:
            self._forgotten += len(self._given)
            self._given.clear()
        return code


class _Table(Generic[T]):
    """A rule's answer per code; a value is judged once, when its code is given out."""

    def __init__(self, rule: Callable[[T], int]) -> None:
        self._rule = rule
        self._answers: NDArray[np.int64] = np.zeros(8, np.int64)
        self._until = 0

    def caught_up(self, vocabulary: Vocabulary[T]) -> NDArray[np.int64]:
        if self._until < vocabulary.moment:
            self._answers = grow_to(self._answers, len(vocabulary))
            for code in vocabulary.given_since(self._until):
                self._answers[code] = self._rule(vocabulary.values[code])
            self._until = vocabulary.moment
        return self._answers


# Almost every rule between pods asks for these keys: their columns are there before the first pod.
_ALWAYS_KEPT = (HOSTNAME, ZONE)

# Columns that only this cache holds may take so many bytes: eighty columns at 100,000 nodes.
_MOST_BYTES = 64 * 2**20


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

    def fill(self, rows: list[int], values: Iterable[str]) -> None:
        """Sets the values of rows of which none has one."""
        codes = list(map(self.vocabulary.acquire, values))
        self.codes = self.codes.copy()
        self.codes[rows] = codes
        self.filled += len(rows)

    def value(self, row: int) -> str | None:
        code = int(self.codes[row])
        return None if code == ABSENT else self.vocabulary.values[code]

    def grow(self, nothing: NDArray[np.intp]) -> None:
        if self.codes.flags.writeable:
            self.codes = grow_to(self.codes, len(nothing), ABSENT)
        else:
            self.codes = nothing

    def numbers(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Returns per code its value as an integer, and whether it is one. The last is ABSENT's."""
        self._numbers = grow_to(self._numbers, len(self.vocabulary) + 1)
        self._numeric = grow_to(self._numeric, len(self.vocabulary) + 1, False)
        for code in self.vocabulary.given_since(self._numbers_until):
            number = parse_int64(self.vocabulary.values[code])
            self._numbers[code] = number or 0
            self._numeric[code] = number is not None
        self._numbers_until = self.vocabulary.moment
        return self._numbers, self._numeric


class LabelColumns:
    """The label columns in use, and which rows have which key.

    Host names and zones have a column from the start. Another key gets its column when a decision
    first asks for it, and keeps it while something holds it: a count of pods per domain, an answer
    for like pods, or the cache of columns that were asked for lately.
    """

    def __init__(self, capacity: int) -> None:
        self._rows: dict[str, set[int]] = {}
        self._columns: WeakValueDictionary[str, LabelColumn] = WeakValueDictionary()
        self._recent: Recent[str, LabelColumn] = Recent(0)
        self.grow(capacity)
        self._always = [LabelColumn(key, self._nothing) for key in _ALWAYS_KEPT]
        self._columns.update({column.key: column for column in self._always})

    def __contains__(self, key: str) -> bool:
        """Whether any node has a key."""
        return key in self._rows

    def column(self, key: str, labels: Callable[[int], Labels]) -> LabelColumn:
        """Returns the column of a key; a new one is filled from the rows that have the key."""
        column = self._recent.find(key)
        if column is not None:
            return column
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = LabelColumn(key, self._nothing)
            rows = list(self._rows.get(key, ()))
            if rows:
                column.fill(rows, [labels(row)[key] for row in rows])
        if column.filled:
            self._recent.put(key, column)
        return column

    def set_row(self, row: int, before: Labels, labels: Labels) -> None:
        """Sets the labels of a row; none if it has no node."""
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
        self._nothing = freeze(np.full(capacity, ABSENT, np.intp))
        self._recent.limit = _MOST_BYTES // self._nothing.nbytes
        for column in self._columns.values():
            column.grow(self._nothing)

    def sweep(self) -> None:
        """Drops columns that were not asked for lately."""
        self._recent.sweep()

    @property
    def columns(self) -> tuple[LabelColumn, ...]:
        """The columns that are kept up to date."""
        return tuple(self._columns.values())

    @property
    def rows(self) -> dict[str, set[int]]:
        """Returns per key the rows that have it."""
        return self._rows
