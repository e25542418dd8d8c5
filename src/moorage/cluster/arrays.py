"""Arrays that grow by doubling, and sums of amounts in them that cannot overflow.

An amount is at most `MOST_AMOUNT`, but nobody limits how many pods name one node. So a sum that an
int64 column cannot hold safely is kept as a Python integer beside the column, which then holds
`MOST_SUM`. The sum is exact when pods leave again.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

A = TypeVar("A", bound=np.generic)
R = TypeVar("R")


def grow_to(array: NDArray[A], length: int, fill: Any = 0) -> NDArray[A]:
    """Returns the array with at least that many last-axis places, new ones holding `fill`."""
    have = array.shape[-1]
    if have >= length:
        return array
    bigger = np.full((*array.shape[:-1], max(length, 2 * have)), fill, array.dtype)
    bigger[..., :have] = array
    return bigger


def facet(writer: object, reads: type[R]) -> R:
    """Returns the reading half of a writer: the same values without methods that change them."""
    view = object.__new__(reads)
    view.__dict__ = writer.__dict__
    return view


def freeze(array: NDArray[A]) -> NDArray[A]:
    """Returns a view of the array through which it cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view


#: The largest number in a column. The sum and the difference of two such numbers fit 64 bits.
MOST_SUM = 2**62 - 1

# A bound that needs no looking after: sums of real pods are smaller, and of numbers up to it a
# million can be added up.
_LEAST_BOUND = 2**40

_Exact = NDArray[Any]


class Sums:
    """int64[kind, place]: sums, each between -MOST_SUM and MOST_SUM."""

    __slots__ = ("array", "beyond", "bound")

    def __init__(
        self,
        array: NDArray[np.int64],
        bound: int = _LEAST_BOUND,
        beyond: dict[tuple[int, int], int] | None = None,
    ) -> None:
        self.array = array
        #: The sums that a column does not hold, by kind and place.
        self.beyond = beyond or {}
        #: No number in the array is larger; -1 if there are sums beyond.
        self.bound = -1 if self.beyond else bound

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> Sums:
        return cls(np.zeros(shape, np.int64))

    def add(self, kind: int, place: int, amount: int) -> int:
        """Adds an amount, which may be negative; returns the number that the column then holds."""
        if not self.beyond:
            # Every pod that comes or goes is here several times, and no honest sum is too large.
            total: int = self.array.item(kind, place) + amount
            if -self.bound <= total <= self.bound:
                self.array[kind, place] = total
                return total
        return self._add_exactly(kind, place, amount)

    def _add_exactly(self, kind: int, place: int, amount: int) -> int:
        at = kind, place
        exact = self.beyond.pop(at, None)
        total = amount + (int(self.array[at]) if exact is None else exact)
        held = max(-MOST_SUM, min(total, MOST_SUM))
        self.array[at] = held
        if held != total:
            self.beyond[at] = total
        if self.beyond:
            self.bound = -1
        elif exact is not None:
            self.bound = self._largest()
        elif self.bound < abs(held):
            # Twice as much, so that growing sums raise it rarely.
            self.bound = min(2 * abs(held), MOST_SUM)
        return held

    def exact(self, kind: int, place: int) -> int:
        """Returns a sum, even one that the column does not hold."""
        return self.beyond.get((kind, place), int(self.array[kind, place]))

    def clear(self, place: int) -> None:
        self.array[:, place] = 0
        if self.beyond:
            self.beyond = {at: total for at, total in self.beyond.items() if at[1] != place}
            self.bound = -1 if self.beyond else self._largest()

    def grow(self, places: int) -> None:
        self.array = grow_to(self.array, places)

    def fit(self, shape: tuple[int, ...]) -> Sums:
        """Returns the same with room for kinds and places that came later."""
        kinds, places = shape
        more = np.zeros((kinds, self.array.shape[1]), np.int64)
        more[: len(self.array)] = self.array
        return Sums(grow_to(more, places)[:, :places], self.bound, dict(self.beyond))

    def copy(self) -> Sums:
        return Sums(self.array.copy(), self.bound, dict(self.beyond))

    def copy_at(self, places: NDArray[np.intp]) -> Sums:
        """Returns the same with the sums of some places only; nothing is anywhere else."""
        if self.beyond:
            return self.copy()
        array = np.zeros_like(self.array)
        array[:, places] = self.array.take(places, axis=1)
        return Sums(array, self.bound)

    def at(self, places: NDArray[np.intp]) -> Sums:
        """Returns the sums of some places."""
        # `take` is three times as fast as an index.
        array = self.array.take(places, axis=1)
        if not self.beyond:
            return Sums(array, self.bound)
        return _from_exact(self._exact().take(places, axis=1))

    def sum_groups(self, begins: NDArray[np.intp]) -> Sums:
        """Sums of the places from each beginning to the next."""
        largest = self.bound * self.array.shape[1]
        if self.beyond or largest > MOST_SUM:
            longest = int(np.diff(begins, append=self.array.shape[1]).max(initial=0))
            largest = self._largest() * longest
            if self.beyond or largest > MOST_SUM:
                return _from_exact(np.add.reduceat(self._exact(), begins, axis=1))
        return Sums(np.add.reduceat(self.array, begins, axis=1), largest)

    def shift(self, places: NDArray[np.intp], more: Sums) -> None:
        """Adds to the sums of some places; a place of `more` is one of `places`."""
        if self.beyond or more.beyond or self.bound + more.bound > MOST_SUM:
            self._shift_exactly(places, more)
            return
        self.array[:, places] = self.array.take(places, axis=1) + more.array
        self.bound += more.bound

    def __neg__(self) -> Sums:
        return Sums(-self.array, self.bound, {at: -total for at, total in self.beyond.items()})

    def __add__(self, other: Sums) -> Sums:
        total = self.copy()
        total.shift(np.arange(self.array.shape[1]), other)
        return total

    def _shift_exactly(self, places: NDArray[np.intp], more: Sums) -> None:
        shifted = self.at(places)._exact() + more._exact()
        new = _from_exact(shifted)
        self.array[:, places] = new.array
        numbers = places.tolist()
        moved = set(numbers)
        kept = {at: total for at, total in self.beyond.items() if at[1] not in moved}
        came = {(kind, numbers[place]): total for (kind, place), total in new.beyond.items()}
        self.beyond = kept | came
        self.bound = -1 if self.beyond else self._largest()

    def _largest(self) -> int:
        return max(int(np.abs(self.array).max(initial=0)), _LEAST_BOUND)

    def _exact(self) -> _Exact:
        """Returns the sums as Python integers."""
        exact = self.array.astype(object)
        for at, total in self.beyond.items():
            exact[at] = total
        return exact


def _from_exact(exact: _Exact) -> Sums:
    held = np.clip(exact, -MOST_SUM, MOST_SUM)
    beyond = {
        (int(kind), int(place)): int(exact[kind, place])
        for kind, place in np.argwhere(held != exact)
    }
    sums = Sums(held.astype(np.int64), beyond=beyond)
    if not beyond:
        sums.bound = sums._largest()
    return sums
