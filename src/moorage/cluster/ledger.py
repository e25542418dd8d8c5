"""Ledgers: what pods count for on their row, kept as they come and go.

A ledger says what a pod counts for; the cluster keeps the counts. There is one way to store them,
to grow them, to try out other pods on them, and to check them, whoever brings the ledger along.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.objects.pod import Pod

from .arrays import freeze, grow_to
from .changes import Change

K = TypeVar("K", bound=Hashable)

#: Returns pods, each with its row.
FindPods = Callable[[], Iterable[tuple[int, Pod]]]

# On so few rows, each is noted by itself: most keys are found on few rows, or on all.
_FEW_ROWS = 16

# The kinds of `Change.LEDGERS`. Beyond so many ledgers, some share one.
_FIRST_KIND, _KINDS = 26, 8
_numbers = count()


class Ledger(ABC, Generic[K]):
    """What pods count for, by key: ports that they hold, disks that they use.

        class HeldPorts(Ledger[int]):
            def entries(self, pod):
                return [(number, 1) for _, _, number in pod.spec.host_ports]

        HELD_PORTS = HeldPorts()
        nodes.ledger(HELD_PORTS).column(80)     # how many pods of each row hold port 80

    A plugin names its ledgers as `ledgers`, and their changes among what it `reads`.
    """

    #: The keys that are counted for many pods at once, as the search for victims does it.
    columns: tuple[K, ...] = ()

    def __init__(self, change: Change | None = None) -> None:
        #: Noted when a pod that counts for something comes or goes.
        self.change = change or Change(1 << (_FIRST_KIND + next(_numbers) % _KINDS))
        #: The same as a plain integer: combining flags of an enum takes many times as long.
        self.kinds = int(self.change)

    @abstractmethod
    def entries(self, pod: Pod) -> Sequence[tuple[K, int]]:
        """Returns what a pod counts for, and how much: the same for the same form of the pod."""

    def removals(self, pod: Pod, row: int, counts: Counts[K]) -> Iterable[tuple[K, int]]:
        """Returns what goes if a pod is evicted in a what-if: by default what it counts for."""
        return self.entries(pod)


_NO_NUMBERS: tuple[NDArray[np.int64], memoryview[int]] = (
    np.zeros(0, np.int64),
    np.zeros(0, np.int64).data,
)


class RowCounts(Mapping[int, int]):
    """The rows with some of one key, and how much each has: a dictionary while they are few."""

    __slots__ = ("_array", "_few", "_filled", "_numbers")

    def __init__(self) -> None:
        #: The counts of few rows; None once there are many.
        self._few: dict[int, int] | None = {}
        #: How many rows have some.
        self._filled = 0
        self._array, self._numbers = _NO_NUMBERS

    @classmethod
    def of(cls, column: NDArray[np.int64]) -> RowCounts:
        """Returns the counts of a column, which is theirs from now on."""
        made = cls()
        made._few, made._filled = None, int(np.count_nonzero(column))
        made._show(column)
        return made

    def _show(self, array: NDArray[np.int64]) -> None:
        # Single numbers are read and written faster through the second.
        self._array, self._numbers = array, array.data

    def __len__(self) -> int:
        return self._filled if self._few is None else len(self._few)

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self._array).tolist() if self._few is None else self._few)

    def __getitem__(self, row: int) -> int:
        """Returns how much a row has, which may be nothing."""
        return self._numbers[row] if self._few is None else self._few.get(row, 0)

    def __contains__(self, row: object) -> bool:
        return isinstance(row, int) and self[row] != 0

    def column(self, capacity: int) -> NDArray[np.int64]:
        """Returns how much each row has."""
        if self._few is None:
            return freeze(self._array)
        column: NDArray[np.int64] = np.zeros(capacity, np.int64)
        self.add_to(column, 1)
        return column

    def add_to(self, sums: NDArray[np.int64], weight: int) -> None:
        """Adds how much each row has, times a weight."""
        if self._few is None:
            sums += self._array[: len(sums)] * weight
            return
        for row, amount in self._few.items():
            sums[row] += amount * weight

    def add(self, row: int, amount: int, capacity: int) -> int:
        """Adds to what a row has, which may be negative; returns what it has then."""
        if self._few is None:
            before = self._numbers[row]
            now = self._numbers[row] = before + amount
            self._filled += (now != 0) - (before != 0)
            return now
        now = self._few.pop(row, 0) + amount
        if now:
            self._few[row] = now
            if len(self._few) > _FEW_ROWS:
                self._widen(capacity)
        return now

    def shift(self, rows: NDArray[np.intp], amounts: NDArray[np.int64], capacity: int) -> None:
        """Adds to what many rows have, each of which is named once."""
        self._widen(capacity)
        before = self._array[rows]
        after = before + amounts
        self._array[rows] = after
        self._filled += int(np.count_nonzero(after)) - int(np.count_nonzero(before))

    def grow(self, capacity: int) -> None:
        if self._few is None and len(self._array) < capacity:
            self._show(grow_to(self._array, capacity))

    def copy(self) -> RowCounts:
        other = RowCounts()
        other._few = None if self._few is None else dict(self._few)
        other._filled = self._filled
        other._show(self._array.copy())
        return other

    def _widen(self, capacity: int) -> None:
        if self._few is not None:
            self._filled = len(self._few)
            self._show(self.column(capacity))
            self._few = None


_NOWHERE = RowCounts()


class Counts(Generic[K]):
    """How much each row has of each key. A layer leaves what is under it alone."""

    def __init__(self, capacity: int, under: Counts[K] | None = None) -> None:
        #: How many rows a column has.
        self.capacity = capacity
        self._under = under
        self._by_key: dict[K, RowCounts] = {}

    # Reading

    def of(self, key: K) -> RowCounts:
        """Returns the rows that have some of a key. It changes with the cluster."""
        own = self._by_key.get(key)
        if own is not None:
            return own
        return _NOWHERE if self._under is None else self._under.of(key)

    def column(self, key: K) -> NDArray[np.int64]:
        """Returns how much each row has of a key, read-only."""
        return self.of(key).column(self.capacity)

    def __iter__(self) -> Iterator[K]:
        """Returns the keys of which some row has some; of a layer, those that it has touched."""
        return iter(self._by_key)

    def by_key(self) -> dict[K, dict[int, int]]:
        """Returns everything in plain values."""
        under = {} if self._under is None else self._under.by_key()
        found = under | {key: dict(rows) for key, rows in self._by_key.items()}
        return {key: rows for key, rows in found.items() if rows}

    # Writing

    def add(self, key: K, row: int, amount: int) -> int:
        """Adds to what a row has of a key; returns what it has then."""
        rows = self._by_key.get(key)
        if rows is None:
            rows = self._own(key)
        now = rows.add(row, amount, self.capacity)
        if not now and not rows and self._under is None:
            del self._by_key[key]
        return now

    def count(self, entries: Iterable[tuple[K, int]], row: int, amount: int) -> None:
        """Counts the entries of a pod that came to (1) or left (-1) a row."""
        for key, many in entries:
            self.add(key, row, amount * many)

    def shift(self, key: K, rows: NDArray[np.intp], amounts: NDArray[np.int64]) -> None:
        """Adds to what many rows have of a key."""
        self._own(key).shift(rows, amounts, self.capacity)

    def grow(self, capacity: int) -> None:
        self.capacity = capacity
        for rows in self._by_key.values():
            rows.grow(capacity)

    def layer(self) -> Counts[K]:
        """Returns equal counts that can be changed without changing these."""
        return Counts(self.capacity, self)

    def _own(self, key: K) -> RowCounts:
        rows = self._by_key.get(key)
        if rows is None:
            known = _NOWHERE if self._under is None else self._under.of(key)
            rows = self._by_key[key] = known.copy()
        return rows


class Ledgers:
    """The counts of all ledgers that were asked for. A layer is what they would be."""

    def __init__(
        self, find_pods: FindPods, capacity: int, widened: Callable[[], None] = lambda: None
    ) -> None:
        """`find_pods` returns the pods that count. `widened` is called when columns are added."""
        self._find_pods = find_pods
        self._widened = widened
        self._capacity = capacity
        self._counts: dict[Ledger[Any], Counts[Any]] = {}
        #: The keys that are counted for many pods at once, each with its place.
        self.columns: dict[Ledger[Any], dict[Any, int]] = {}
        #: How many places there are.
        self.width = 0

    def of(self, ledger: Ledger[K]) -> Counts[K]:
        """Returns the counts of a ledger; a new one counts all pods once."""
        known = self._counts.get(ledger)
        if known is None:
            known = self._counts[ledger] = self.recount(ledger)
            if ledger.columns:
                places = range(self.width, self.width + len(ledger.columns))
                self.columns[ledger] = dict(zip(ledger.columns, places, strict=True))
                self.width = places.stop
                self._widened()
        return known

    def __contains__(self, ledger: Ledger[Any]) -> bool:
        """Whether a ledger was asked for."""
        return ledger in self._counts

    def recount(self, ledger: Ledger[K]) -> Counts[K]:
        """Returns what all pods count for, found out from the pods themselves."""
        counts: Counts[K] = Counts(self._capacity)
        for row, pod in self._find_pods():
            counts.count(ledger.entries(pod), row, 1)
        return counts

    def count(self, pod: Pod, row: int, amount: int) -> int:
        """Counts a pod that came to (1) or left (-1) a row; returns the kinds of change."""
        kinds = 0
        for ledger, counts in self._counts.items():
            entries = ledger.entries(pod)
            if entries:
                kinds |= ledger.kinds
                counts.count(entries, row, amount)
        return kinds

    def weigh(self, pod: Pod) -> tuple[tuple[int, int], ...]:
        """Returns what a pod counts for in the columns: the place of each, and how much."""
        return tuple(
            (places[key], many)
            for ledger, places in self.columns.items()
            for key, many in ledger.entries(pod)
            if key in places
        )

    def agree(self, known: Pod, seen: Pod) -> bool:
        """Whether two forms of a pod count for the same."""
        return all(each.entries(known) == each.entries(seen) for each in self._counts)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for counts in self._counts.values():
            counts.grow(capacity)

    def __iter__(self) -> Iterator[Ledger[Any]]:
        return iter(self._counts)

    def layer(self) -> LedgerLayer:
        return LedgerLayer(self, self)


class LedgerLayer:
    """The counts as they would be with other pods."""

    def __init__(self, ledgers: Ledgers, under: Ledgers | LedgerLayer) -> None:
        self._ledgers = ledgers
        self._under = under
        self._counts: dict[Ledger[Any], Counts[Any]] = {}

    def of(self, ledger: Ledger[K]) -> Counts[K]:
        known = self._counts.get(ledger)
        if known is None and ledger not in self._ledgers:
            # It is too late to count what was tried so far.
            raise LookupError(f"no enabled plugin declares ledger {type(ledger).__name__}")
        return self._under.of(ledger) if known is None else known

    def add_pod(self, pod: Pod, row: int) -> None:
        for ledger in self._ledgers:
            entries = ledger.entries(pod)
            if entries:
                self._own(ledger).count(entries, row, 1)

    def remove_pod(self, pod: Pod, row: int) -> None:
        for ledger in self._ledgers:
            if ledger.entries(pod):
                own = self._own(ledger)
                own.count(ledger.removals(pod, row, own), row, -1)

    def shift(self, rows: NDArray[np.intp], amounts: NDArray[np.int64]) -> None:
        """Adds to the columns of many rows; `amounts` is int64[place, row]."""
        for ledger, places in self._ledgers.columns.items():
            for key, at in places.items():
                if amounts[at].any():
                    self._own(ledger).shift(key, rows, amounts[at])

    def layer(self) -> LedgerLayer:
        return LedgerLayer(self._ledgers, self)

    def _own(self, ledger: Ledger[K]) -> Counts[K]:
        known = self._counts.get(ledger)
        if known is None:
            known = self._counts[ledger] = self._under.of(ledger).layer()
        return known
