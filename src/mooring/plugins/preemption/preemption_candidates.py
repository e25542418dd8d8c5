"""Nodes on which evicting pods would make room, as columns, and which of them is best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.pods import start_of
from mooring.objects.pod import Pod

# Makes every priority positive, so that more victims always weigh more than fewer.
PRIORITY_SHIFT = 2**31


@dataclass(frozen=True, slots=True)
class Candidates:
    """One place per node. Victims are listed with the most important first."""

    rows: NDArray[np.intp]
    violations: NDArray[np.int64]
    highest_priority: NDArray[np.int64]
    priority_sum: NDArray[np.int64]
    victim_count: NDArray[np.int64]
    #: When the longest-running of the most important victims started.
    earliest_start: NDArray[np.float64]
    #: Names the victims of the node at a place.
    victims: Callable[[int], tuple[Pod, ...]]

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, found: Sequence[tuple[int, tuple[Pod, ...], int]]) -> Candidates:
        """Makes candidates from rows with their victims and the number of broken budgets."""
        columns = [(row, broken, *weigh(victims)) for row, victims, broken in found]
        rows, violations, highest, sums, counts, starts = (
            zip(*columns, strict=True) if columns else ((),) * 6
        )
        return cls(
            np.array(rows, np.intp),
            np.array(violations, np.int64),
            np.array(highest, np.int64),
            np.array(sums, np.int64),
            np.array(counts, np.int64),
            np.array(starts, np.float64),
            lambda at: found[at][1],
        )

    def followed_by(self, other: Candidates) -> Candidates:
        """Returns these candidates, then the others."""
        own = len(self)
        return Candidates(
            np.concatenate((self.rows, other.rows)),
            np.concatenate((self.violations, other.violations)),
            np.concatenate((self.highest_priority, other.highest_priority)),
            np.concatenate((self.priority_sum, other.priority_sum)),
            np.concatenate((self.victim_count, other.victim_count)),
            np.concatenate((self.earliest_start, other.earliest_start)),
            lambda at: self.victims(at) if at < own else other.victims(at - own),
        )

    def first(self, count: int) -> Candidates:
        """Returns the first ones, up to a number."""
        return Candidates(
            self.rows[:count],
            self.violations[:count],
            self.highest_priority[:count],
            self.priority_sum[:count],
            self.victim_count[:count],
            self.earliest_start[:count],
            self.victims,
        )

    def enough(self, wanted: int) -> int | None:
        """Returns how many were needed to have that many, with one that breaks no budget."""
        if len(self.rows) < wanted or not len(self.rows):
            return None
        least = int(self.violations.argmin())
        return None if self.violations[least] else max(wanted, least + 1)

    def best(self) -> int:
        """Returns the position of the best: each criterion decides among equals of the earlier."""
        places: NDArray[np.intp] | None = None
        for figures in (
            self.violations,
            self.highest_priority,
            self.priority_sum,
            self.victim_count,
            -self.earliest_start,
        ):
            left = figures if places is None else figures[places]
            lowest = np.minimum.reduce(left)
            if lowest == np.maximum.reduce(left):
                # By this criterion, all are equal.
                continue
            least = (left == lowest).nonzero()[0]
            places = least if places is None else places[least]
            if len(places) == 1:
                break
        return 0 if places is None else places.item(0)


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
