"""Small integers for values that many rows share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from .arrays import grown
from .recent import Recent

T = TypeVar("T", bound=Hashable)

ABSENT = -1

# Rules come from pod templates. Templates come and go, so the oldest rule makes room.
_MOST_RULES = 512

# How much is remembered of which codes were given out, before tables are better made anew.
_MOST_GIVEN = 1_024
_MOST_GIVEN_PER_CODE = 2


class Vocabulary(Generic[T]):
    """Codes for the values in use. A code is given back when its last user leaves, then reused."""

    __slots__ = ("_codes", "_forgotten", "_free", "_given", "_judged", "_uses", "values")

    def __init__(self) -> None:
        self._codes: dict[T, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []
        #: The value of each code; a code that is not in use keeps its last value.
        self.values: list[T] = []
        # The codes in the order of being given out, so that tables over codes can catch up.
        self._given: list[int] = []
        self._forgotten = 0
        self._judged: Recent[Callable[[T], int], _Table[T]] | None = None

    def __len__(self) -> int:
        """The number of codes; every code is below it."""
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
        """How many codes were given out so far."""
        return self._forgotten + len(self._given)

    def given_since(self, moment: int) -> Iterable[int]:
        """The codes that mean something else than at a moment: perhaps all, after a long time."""
        if moment < self._forgotten:
            return range(len(self.values))
        return set(self._given[moment - self._forgotten :])

    def in_use(self) -> dict[T, int]:
        return self._codes

    def judged(self, rule: Callable[[T], int]) -> NDArray[np.int64]:
        """What a rule says of each value, by code. Equal rules share a table, caught up here."""
        if self._judged is None:
            self._judged = Recent(_MOST_RULES)
        table = self._judged.find(rule)
        if table is None:
            table = _Table(rule)
            self._judged.put(rule, table)
        return table.caught_up(self)

    def sweep(self) -> None:
        """Drops the rules that nobody asked for lately."""
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
        if len(self._given) > _MOST_GIVEN_PER_CODE * len(self.values) + _MOST_GIVEN:
            self._forgotten += len(self._given)
            self._given.clear()
        return code


class _Table(Generic[T]):
    """A rule's answer per code; a value is looked at once, when its code was given out."""

    def __init__(self, rule: Callable[[T], int]) -> None:
        self._rule = rule
        self._answers: NDArray[np.int64] = np.zeros(8, np.int64)
        self._until = 0

    def caught_up(self, vocabulary: Vocabulary[T]) -> NDArray[np.int64]:
        if self._until < vocabulary.moment:
            self._answers = grown(self._answers, len(vocabulary))
            for code in vocabulary.given_since(self._until):
                self._answers[code] = self._rule(vocabulary.values[code])
            self._until = vocabulary.moment
        return self._answers
