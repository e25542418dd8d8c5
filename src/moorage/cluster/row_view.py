"""What follows the change log: the only code that reads it.

A `RowView` is an array with a value per row. A `LogReader` is for what is no such array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .arrays import freeze
from .changes import EVERYWHERE, Change, ChangeLog, unite
from .nodes import Nodes, Rows

S = TypeVar("S", bound=np.generic)

# More changes than this are read as columns, and more rows are computed together: one by one would
# take longer.
_ONE_BY_ONE = 64

_MEMBERSHIP = int(Change.MEMBERSHIP)


class Changed(NamedTuple):
    """What changed since the last look."""

    #: The kinds of change of each row.
    rows: dict[int, int]
    #: The kinds of change of the whole cluster, and all kinds in one number.
    everywhere: int
    union: int

    @classmethod
    def of(cls, rows: dict[int, int], everywhere: int = 0) -> Changed:
        return cls(rows, everywhere, everywhere | unite(rows.values()))


_NOTHING = Changed.of({})


class LogReader:
    """A position in the change log.

    changed = reader.read()
    if changed is None:     # too far behind: look at everything
        ...
    """

    __slots__ = ("_generation", "log")

    def __init__(self, log: ChangeLog) -> None:
        self.log = log
        self._generation = log.generation

    @property
    def is_current(self) -> bool:
        """Whether nothing has changed since the last look."""
        return self._generation == self.log.generation

    @property
    def distance(self) -> int:
        """How many changes were noted since the last look."""
        return self.log.generation - self._generation

    def read(self) -> Changed | None:
        """Returns what changed since the last look, or None if the log has dropped some of it."""
        log, generation = self.log, self._generation
        self._generation = now = log.generation
        newest = log.newest
        if now - generation == 1 and newest is not None and newest[0] != EVERYWHERE:
            # Most readers see one placement at a time.
            return Changed({newest[0]: newest[1]}, 0, newest[1])
        return self._find(generation)

    def peek(self) -> Changed | None:
        """Returns what `read` does. The next look will see the same changes again."""
        return self._find(self._generation)

    def peek_kinds(self) -> int | None:
        """Returns the kinds of all changes since the last look: faster than to find their rows."""
        return self.log.unite_since(self._generation)

    def skip(self) -> None:
        """Leaves out what changed until now."""
        self._generation = self.log.generation

    def _find(self, generation: int) -> Changed | None:
        log = self.log
        if generation == log.generation:
            return _NOTHING
        if log.generation - generation > _ONE_BY_ONE:
            many = log.gather(generation)
            return None if many is None else Changed.of(many.by_row(), many.everywhere)
        rows = log.since(generation)
        return None if rows is None else Changed.of(rows, rows.pop(EVERYWHERE, 0))


class Follower(Protocol):
    """What is derived from a `RowView`, such as sums over its rows."""

    def move(self, row: int, before: Any, after: Any) -> None:
        """Takes in the new value of one row."""

    def renew(self, values: NDArray[Any]) -> None:
        """Takes in all values."""


class RowView(Generic[S]):
    """An array with a value per row that is kept up to date with the rows.

        used = RowView(nodes, Change.REQUESTED, lambda rows: nodes.requested[0, rows])
        used.current()[row]

    `compute` is asked about rows that have changed in one of some ways. It is asked about all rows
    after a change of the whole cluster of such a kind, when nodes come or go, and when the log has
    dropped some changes.
    """

    __slots__ = (
        "_compute",
        "_compute_row",
        "_followers",
        "_generation",
        "_kinds",
        "_log",
        "_nodes",
        "_values",
        "values",
    )

    def __init__(
        self,
        nodes: Nodes,
        kinds: int,
        compute: Callable[[Rows], NDArray[S]],
        compute_row: Callable[[int], Any] | None = None,
    ) -> None:
        """Computes all values. `compute_row` is a faster way to compute that of one row."""
        assert nodes.changes is not None, "what-if rows have no log"
        self._nodes = nodes
        self._log = nodes.changes
        self._kinds = int(kinds) | _MEMBERSHIP
        self._compute = compute
        self._compute_row = compute_row or self._compute_alone
        self._followers: list[Follower] = []
        self._generation = 0
        self._values: NDArray[S]
        self._renew()

    def current(self) -> NDArray[S]:
        """Returns all values, read-only, in the same array unless nodes come or go."""
        if self._generation != self._log.generation:
            self._catch_up()
        return self.values

    def follow(self, follower: Follower) -> None:
        """Reports each new value to a follower, and first of all the present ones."""
        self._followers.append(follower)
        follower.renew(self.current())

    def _catch_up(self) -> None:
        log, generation = self._log, self._generation
        if log.generation - generation > _ONE_BY_ONE:
            self._catch_up_together(generation)
            return
        changed = log.since(generation)
        if changed is None or changed.get(EVERYWHERE, 0) & self._kinds:
            self._renew()
            return
        self._generation = log.generation
        for row, kinds in changed.items():
            if kinds & self._kinds and row != EVERYWHERE:
                before, after = self._values.item(row), self._compute_row(row)
                if before != after:
                    self._values[row] = after
                    for each in self._followers:
                        each.move(row, before, after)

    def _catch_up_together(self, generation: int) -> None:
        changed = self._log.gather(generation)
        if changed is None or changed.everywhere & self._kinds:
            self._renew()
            return
        self._generation = self._log.generation
        rows = changed.rows[changed.kinds & self._kinds != 0]
        if len(rows):
            self._values[rows] = self._compute(rows)
            self._report_all()

    def _renew(self) -> None:
        self._generation = self._log.generation
        self._values = np.array(self._compute(self._nodes.everything))
        #: The values as of the last call of `current`.
        self.values = freeze(self._values)
        self._report_all()

    def _report_all(self) -> None:
        for each in self._followers:
            each.renew(self.values)

    def _compute_alone(self, row: int) -> Any:
        return self._compute(np.array([row])).item(0)
