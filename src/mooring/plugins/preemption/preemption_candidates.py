"""Nodes on which evicting pods would make room, as columns, and which of them is best."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.cluster.pods import start_of
from mooring.objects.pod import Pod

# Makes every priority positive, so that more victims always weigh more than fewer.
PRIORITY_SHIFT = 2**31


class Candidates(msgspec.Struct, frozen=True, eq=False):
    """One place per node. Victims are listed with the most important first."""

    rows: NDArray[np.intp]
    #: int64[4, place]: budgets broken, the highest priority, the sum of priorities, the number.
    figures: NDArray[np.int64]
    #: When the longest-running of the most important victims started.
    earliest_start: NDArray[np.float64]
    #: Names the victims of the node at a place.
    victims: Callable[[int], tuple[Pod, ...]]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def violations(self) -> NDArray[np.int64]:
        """Returns how many budgets evicting breaks, per place."""
        return self.figures[0]

    @classmethod
    def of(cls, found: Sequence[tuple[int, tuple[Pod, ...], int]]) -> Candidates:
        """Makes candidates from rows with their victims and the number of broken budgets."""
        columns = [(row, broken, *weigh(victims)) for row, victims, broken in found]
        rows, *figures, starts = zip(*columns, strict=True) if columns else ((),) * 6
        return cls(
            np.array(rows, np.intp),
            np.array(figures, np.int64),
            np.array(starts, np.float64),
            lambda at: found[at][1],
        )

    def followed_by(self, other: Candidates) -> Candidates:
        """Returns these candidates, then the others."""
        own = len(self)
        return Candidates(
            np.concatenate((self.rows, other.rows)),
            np.concatenate((self.figures, other.figures), axis=1),
            np.concatenate((self.earliest_start, other.earliest_start)),
            lambda at: self.victims(at) if at < own else other.victims(at - own),
        )

    def first(self, count: int) -> Candidates:
        """Returns the first ones, up to a number."""
        return Candidates(
            self.rows[:count],
            self.figures[:, :count],
            self.earliest_start[:count],
            self.victims,
        )

    def enough(self, wanted: int) -> int | None:
        """Returns how many were needed to have that many, with one that breaks no budget."""
        if len(self.rows) < wanted or not len(self.rows):
            return None
        violations = self.figures[0]
        least = int(violations.argmin())
        return None if violations[least] else max(wanted, least + 1)

    def best(self) -> int:
        """Returns the position of the best: each criterion decides among equals of the earlier."""
        lowest = np.minimum.reduce(self.figures, axis=1).tolist()
        highest = np.maximum.reduce(self.figures, axis=1).tolist()
        places: NDArray[np.intp] | None = None
        for figures, low, high in zip(self.figures, lowest, highest, strict=True):
            # By many a criterion, all are equal.
            if low != high:
                places = _keep_lowest(figures, places)
        # The later they started, the better.
        latest = _keep_lowest(-self.earliest_start, places)
        return latest.item(0)


def _keep_lowest(
    figures: NDArray[np.int64] | NDArray[np.float64], places: NDArray[np.intp] | None
) -> NDArray[np.intp]:
    """Returns the places with the lowest figure, among some or all."""
    if places is None:
        return (figures == np.minimum.reduce(figures)).nonzero()[0]
    left = figures[places]
    return places[left == np.minimum.reduce(left)]


def weigh(victims: Sequence[Pod]) -> tuple[int, int, int, float]:
    """Returns highest priority, sum of shifted priorities, number, earliest start of the highest.

    The first victim counts as the most important. An extender may have named a lesser one first.
    """
    highest = max(pod.priority for pod in victims)
    return (
        victims[0].priority,
        sum(pod.priority + PRIORITY_SHIFT for pod in victims),
        len(victims),
        min(start_of(pod) for pod in victims if pod.priority == highest),
    )


#: No node at all.
NO_CANDIDATES = Candidates.of(())
