"""Arrays that grow by doubling, and sums of amounts in them that cannot overflow.

An amount is at most `MOST_AMOUNT`, but any number of pods may name one node. A column holds at most
`MOST_SUM`, and a sum that reaches it is kept as a Python integer beside the column, so that it is
exact when pods leave again. Copies and sums over many places do not keep it: there the place stays
full.
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


class Sums:
    """int64[kind, place]: sums of amounts. A place that holds MOST_SUM is full."""

    __slots__ = ("array", "beyond")

    def __init__(
        self, array: NDArray[np.int64], beyond: dict[tuple[int, int], int] | None = None
    ) -> None:
        self.array = array
        #: The sums from MOST_SUM on, by kind and place. A full place without one stays full.
        self.beyond = beyond or {}

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> Sums:
        return cls(np.zeros(shape, np.int64))

    @property
    def most_simple(self) -> int:
        """Returns the largest total that may be written to the array instead of added."""
        return -1 if self.beyond else MOST_SUM - 1

    def add(self, kind: int, place: int, amount: int) -> int:
        """Adds an amount, which may be negative; returns the number that the column then holds."""
        before: int = self.array.item(kind, place)
        if before == MOST_SUM:
            if (kind, place) not in self.beyond:
                return MOST_SUM
            before = self.beyond.pop((kind, place))
        total = before + amount
        if total >= MOST_SUM:
            self.beyond[kind, place] = total
            total = MOST_SUM
        self.array[kind, place] = total
        return total

    def exact(self, kind: int, place: int) -> int:
        """Returns a sum, even one that the column does not hold."""
        return self.beyond.get((kind, place), int(self.array[kind, place]))

    def clear(self, place: int) -> None:
        self.array[:, place] = 0
        for at in [at for at in self.beyond if at[1] == place]:
            del self.beyond[at]

    def grow(self, places: int) -> None:
        self.array = grow_to(self.array, places)

    def fit(self, shape: tuple[int, ...]) -> Sums:
        """Returns the same with room for kinds and places that came later."""
        kinds, places = shape
        more = np.zeros((kinds, self.array.shape[1]), np.int64)
        more[: len(self.array)] = self.array
        return Sums(grow_to(more, places)[:, :places], dict(self.beyond))

    def copy(self) -> Sums:
        """Returns the same for trying things; full places stay full there."""
        return Sums(self.array.copy())

    def copy_at(self, places: NDArray[np.intp]) -> Sums:
        """Returns the same with the sums of some places only; nothing is anywhere else."""
        array = np.zeros_like(self.array)
        array[:, places] = self.array.take(places, axis=1)
        return Sums(array)

    # Many places at once

    def at(self, places: NDArray[np.intp]) -> Sums:
        """Returns the sums of some places."""
        # `take` is three times as fast as an index.
        return Sums(self.array.take(places, axis=1))

    def sum_groups(self, begins: NDArray[np.intp]) -> Sums:
        """Sums of the places from each beginning to the next; none of them is negative."""
        totals = np.add.reduceat(self.array, begins, axis=1)
        if self.array.max(initial=0) > MOST_SUM // max(self.array.shape[1], 1):
            # A total beyond 64 bits has wrapped around, which its value as a float shows.
            rough = np.add.reduceat(self.array, begins, axis=1, dtype=np.float64)
            totals[(rough > 1.5 * MOST_SUM) | (totals > MOST_SUM)] = MOST_SUM
        return Sums(totals)

    def shift(self, places: NDArray[np.intp], more: Sums) -> None:
        """Adds to the sums of some places; a place of `more` is one of `places`."""
        self.array[:, places] = _add(self.array.take(places, axis=1), more.array)
        self.beyond.clear()

    def __neg__(self) -> Sums:
        return Sums(-self.array)

    def __add__(self, other: Sums) -> Sums:
        return Sums(_add(self.array, other.array))


def _add(sums: NDArray[np.int64], more: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the totals; full places stay full, whatever is added."""
    totals = np.minimum(sums + more, MOST_SUM)
    totals[sums == MOST_SUM] = MOST_SUM
    return totals
