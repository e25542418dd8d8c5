"""The figures of an extended resource as columns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from .arrays import frozen, grown


class ExtendedColumns:
    """Which rows have a resource, and the figures that its handle asks to be kept."""

    __slots__ = ("_figures", "_places", "_present")

    def __init__(self, names: tuple[str, ...], capacity: int) -> None:
        self._places = {name: at for at, name in enumerate(names)}
        self._present: NDArray[np.bool_] = np.zeros(capacity, np.bool_)
        self._figures: NDArray[np.int64] = np.zeros((len(names), capacity), np.int64)

    @property
    def present(self) -> NDArray[np.bool_]:
        """bool[row]: where there is a resource."""
        return frozen(self._present)

    def __getitem__(self, name: str) -> NDArray[np.int64]:
        """int64[row]: a figure, 0 where there is no resource."""
        return frozen(self._figures[self._places[name]])

    def at(self, row: int) -> list[int] | None:
        """The figures of one row, in the order of `names`; None where there is no resource."""
        return self._figures[:, row].tolist() if self._present[row] else None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._places)

    def put(self, row: int, figures: Mapping[str, int]) -> None:
        self._present[row] = True
        for name, at in self._places.items():
            # An author's code may leave out later what it had at first.
            self._figures[at, row] = figures.get(name, 0)

    def clear(self, row: int) -> None:
        self._present[row] = False
        self._figures[:, row] = 0

    def grow(self, capacity: int) -> None:
        self._present = grown(self._present, capacity, False)
        self._figures = grown(self._figures, capacity)

    def copied(self) -> ExtendedColumns:
        other = object.__new__(ExtendedColumns)
        other._places = self._places
        other._present = self._present.copy()
        other._figures = self._figures.copy()
        return other
