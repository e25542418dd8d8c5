"""Arrays with a value per row that follow the change log: the only code that reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .arrays import freeze
from .changes import EVERYWHERE, Change, ChangeLog, unite
from .nodes import Nodes, Rows

S = TypeVar("S", bound=np.generic)
W = TypeVar("W", bound="RowView[Any]")

# More rows than this are computed together.
_ONE_BY_ONE = 16

_MEMBERSHIP = int(Change.MEMBERSHIP)

# A generation before all that are in the log.
_NEVER = -1


class Changed(NamedTuple):
    """What changed since the last look."""

    #: The kinds of change of each row.
    rows: dict[int, int]
    #: The kinds of change of the whole cluster, and all kinds in one number.
    everywhere: int
    union: int
    #: The generation of the last look.
    since: int

    @classmethod
    def of(cls, rows: dict[int, int], everywhere: int, since: int) -> Changed:
        return cls(rows, everywhere, everywhere | unite(rows.values()), since)


def find_changes(log: ChangeLog, generation: int) -> Changed | None:
    """Returns what changed after a generation, or None if the log has dropped some of it."""
    newest = log.newest
    if log.generation - generation == 1 and newest is not None and newest[0] != EVERYWHERE:
        # Most readers see one placement at a time.
        return Changed({newest[0]: newest[1]}, 0, newest[1], generation)
    if generation == log.generation:
        return Changed({}, 0, 0, generation)
    rows = log.since(generation)
    return None if rows is None else Changed.of(rows, rows.pop(EVERYWHERE, 0), generation)


#: Everything may have changed.
EVERYTHING = Changed({}, int(Change.ALL), int(Change.ALL), _NEVER)


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

    `compute` is asked about rows that have changed in one of some ways, and about those where a
    node came or went. It is asked about all rows after a change of the whole cluster of such a
    kind, and when the log has dropped some changes.
    """

    __slots__ = (
        "__weakref__",
        "_followers",
        "_functions",
        "_generation",
        "_log",
        "_values",
        "kinds",
        "nodes",
        "reaching",
        "values",
        "version",
    )

    def __init__(
        self,
        nodes: Nodes,
        kinds: int,
        compute: Callable[[Rows], NDArray[S]] | None = None,
        compute_row: Callable[[int], Any] | None = None,
    ) -> None:
        """Computes all values. `compute_row` is a faster way to compute that of one row.

        Subclasses may have methods of these names instead.
        """
        assert nodes.changes is not None, "what-if rows have no log"
        self.nodes = nodes
        self._log = nodes.changes
        #: The kinds of change that can alter values.
        self.kinds = int(kinds)
        #: Those that may reach all rows, wherever they are.
        self.reaching = 0
        self._functions = compute, compute_row
        self._followers: list[Follower] = []
        #: It changes with each value.
        self.version = 0
        self._generation = 0
        self._values: NDArray[S]
        self.renew()

    def current(self) -> NDArray[S]:
        """Returns all values, read-only, in the same array unless nodes come."""
        log, generation = self._log, self._generation
        if generation != log.generation:
            kinds = log.unite_since(generation)
            if kinds is not None and not kinds & (self.kinds | _MEMBERSHIP):
                self._generation = log.generation
            else:
                self._take(find_changes(log, generation))
        return self.values

    def follow(self, follower: Follower) -> None:
        """Reports each new value to a follower, and first of all the present ones."""
        self._followers.append(follower)
        follower.renew(self.current())

    def unfollow(self, follower: Follower) -> None:
        """Reports no more values to a follower."""
        self._followers.remove(follower)

    def take(self, changed: Changed) -> None:
        """Brings the values up to date, given what changed since some time until now.

        The caller knows that nothing that alters values changed before that time and after the
        view was brought up to date.
        """
        if not _NEVER < self._generation <= changed.since:
            self.current()
        elif changed.everywhere or changed.union & (self.reaching | _MEMBERSHIP):
            self._take(changed)
        else:
            self._take_rows(changed.rows, self.kinds)

    def reaches_all(self, union: int) -> bool:
        """Returns whether changes of some kinds, wherever they are, reach the values of all rows.

        It is asked about the kinds that are `reaching`.
        """
        return True

    def compute(self, rows: Rows) -> NDArray[S]:
        """Returns the present values of some rows."""
        compute = self._functions[0]
        assert compute is not None, "a view without a function computes values itself"
        return compute(rows)

    def compute_row(self, row: int) -> Any:
        """Returns the present value of a row."""
        quick = self._functions[1]
        return self.compute_alone(row) if quick is None else quick(row)

    def compute_alone(self, row: int) -> Any:
        """Returns the present value of a row, which may have no node."""
        return self.compute(np.array([row])).item(0)

    def renew(self) -> None:
        """Computes all values."""
        self._generation = _NEVER
        self._values = np.array(self.compute(self.nodes.everything))
        #: The values as of the last call of `current`.
        self.values = freeze(self._values)
        self._generation = self._log.generation
        self._report_all()

    def _take(self, changed: Changed | None) -> None:
        self._generation = _NEVER
        if changed is None:
            self.renew()
            return
        rows, everywhere, union, _ = changed
        kinds = self.kinds
        reaching = union & self.reaching
        if everywhere & kinds & ~_MEMBERSHIP or (reaching and self.reaches_all(reaching)):
            self.renew()
            return
        if everywhere & _MEMBERSHIP:
            self._grow()
        self._take_rows(rows, kinds | _MEMBERSHIP)

    def _take_rows(self, rows: dict[int, int], kinds: int) -> None:
        # Unless all goes well, the values are out of date.
        self._generation = _NEVER
        if len(rows) > _ONE_BY_ONE:
            self._take_together([row for row, each in rows.items() if each & kinds])
        else:
            values = self._values
            for row, each in rows.items():
                if each & kinds:
                    before = values.item(row)
                    # A quick answer needs a node there.
                    quick = self.compute_alone if each & _MEMBERSHIP else self.compute_row
                    after = quick(row)
                    if before != after:
                        values[row] = after
                        self.version += 1
                        for follower in self._followers:
                            follower.move(row, before, after)
        self._generation = self._log.generation

    def _take_together(self, rows: Sequence[int]) -> None:
        if len(rows):
            at = np.array(rows)
            self._values[at] = self.compute(at)
            self._report_all()

    def _grow(self) -> None:
        """Makes room for rows that came; all of them are among the changed rows."""
        count = self.nodes.count(self.nodes.everything)
        if count != len(self._values):
            grown = np.zeros(count, self._values.dtype)
            grown[: len(self._values)] = self._values
            self._values, self.values = grown, freeze(grown)
            self._report_all()

    def _report_all(self) -> None:
        self.version += 1
        for each in self._followers:
            each.renew(self.values)


class RowViews(Generic[W]):
    """Views that are brought up to date together: the log is read once for all of them."""

    def __init__(self, log: ChangeLog, views: Sequence[W]) -> None:
        """All of them are up to date."""
        self._log = log
        self._generation = log.generation
        self.put(views)

    def put(self, views: Sequence[W]) -> None:
        """Goes on with some views, up to date as well, of which some may be the same as before."""
        self._views = views
        #: The views that changes of some kinds may alter.
        self._by_union: dict[int, Sequence[W]] = {}

    def read(self) -> Changed:
        """Returns what changed since the last call: `EVERYTHING` if the log has dropped some."""
        generation, self._generation = self._generation, self._log.generation
        return find_changes(self._log, generation) or EVERYTHING

    def changed_only(self, row: int | None) -> bool:
        """Returns whether nothing has changed since the last `read` but one row."""
        changed = find_changes(self._log, self._generation)
        return changed is not None and not changed.everywhere and changed.rows.keys() <= {row}

    def find_altered(self, union: int) -> Sequence[W]:
        """Returns the views that changes of some kinds may alter."""
        altered = self._by_union.get(union)
        if altered is None:
            # A node that comes or goes concerns everyone.
            everyone = union & _MEMBERSHIP
            altered = [each for each in self._views if everyone or each.kinds & union]
            self._by_union[union] = altered
        return altered
