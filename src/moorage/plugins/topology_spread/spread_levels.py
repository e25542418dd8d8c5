"""The levels of soft spread constraints: the few numbers that occur, and the place of each row.

The domains of a row and, by host name, the pods on it decide its place. So places are kept from pod
to pod, and found again only on rows that have changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Tally, View
from moorage.cluster.row_view import RowView
from moorage.framework.plugin import Levels, Scores

Amounts = NDArray[np.float64]
Places = NDArray[np.intp] | NDArray[np.int32]


class KeptPlaces:
    """The place of each row among the sums of some amounts, one amount of each constraint.

    A constraint by host name varies slowest, so that more pods on a node only add places.
    """

    __slots__ = ("_places", "_shapes", "_tally", "_width")

    def __init__(
        self,
        costs: Sequence[tuple[Amounts, Places]],
        by_name: int | None,
        tally: Tally | None,
        nodes: View,
    ) -> None:
        """Takes the amounts and places of each constraint, which is by host name, and its tally."""
        others = [each for at, each in enumerate(costs) if at != by_name]
        base, width = np.zeros(len(costs[0][1]), np.intp), 1
        for amounts, places in others:
            base = base * len(amounts) + places
            width *= len(amounts)
        self._width, self._tally = width, tally
        self._shapes = _find_shapes(len(costs), by_name)
        if tally is None:
            self._places = RowView(nodes, Change.NONE, lambda rows: base[rows])
        else:
            counts = tally
            self._places = RowView(
                nodes, Change.PODS, lambda rows: base[rows] + counts.by_row[rows] * width
            )

    @property
    def places(self) -> NDArray[np.intp]:
        """The place of each row, always in the same array."""
        return self._places.current()

    def is_about(self, width: int, tally: Tally | None) -> bool:
        """Whether the places are for this number of sums and, by host name, for this tally."""
        return self._width == width and self._tally is tally

    def find_levels(self, amounts: Sequence[Amounts], most: int) -> Levels | None:
        """Returns the sums of the constraints' amounts; None if there are more than `most`."""
        if prod(map(len, amounts)) > most:
            return None
        sums = amounts[0].reshape(self._shapes[0])
        for each, shape in zip(amounts[1:], self._shapes[1:], strict=True):
            # Added in the order of the constraints, as for a single row.
            sums = sums + each.reshape(shape)
        return Levels(round_up(sums.ravel()), self.places, are_kept=True)


def _find_shapes(count: int, by_name: int | None) -> tuple[tuple[int, ...], ...]:
    """Returns for each constraint the shape of its amounts, so that adding them gives all sums."""
    order = sorted(range(count), key=lambda at: (at != by_name, at))
    return tuple(tuple(-1 if at == own else 1 for at in order) for own in range(count))


def round_up(costs: Amounts) -> Scores:
    """Returns costs rounded to whole numbers; halves are rounded up, never to even."""
    whole = np.floor(costs)
    whole += costs - whole >= 0.5
    rounded: Scores = whole.astype(np.int64)
    return rounded
