"""Nodes on which evicting pods would make room, as columns, and which of them is best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster.pods import start_of
from moorage.objects.pod import Pod

# Makes every priority positive, so that more victims always weigh more than fewer.
PRIORITY_SHIFT = 2**31

# The kinds of numbers in the columns of weights.
_KINDS = (np.int64, np.int64, np.int64, np.int64, np.float64)


#: The budgets that evicting breaks, the highest priority, the sum of priorities, the number of
#: victims, and when the longest-running of the most important started, negated.
Columns = tuple[NDArray[Any], ...]


class VictimWeights:
    """What the victims on nodes weigh, a place per node: by each column, the lowest is best."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        #: The columns in which any places differ.
        self.criteria: Columns = ()
        #: Whether evicting breaks a budget anywhere.
        self.break_budgets = False
        #: One number of each column, and whether there are others.
        self._sample: tuple[float, ...] | None = None
        self._differ = [False] * len(columns)
        self._compare(columns)

    @classmethod
    def nothing(cls, size: int) -> VictimWeights:
        """Makes columns of a size to be filled."""
        weights = cls(tuple(np.empty(0, kind) for kind in _KINDS))
        weights.columns = tuple(np.zeros(size, kind) for kind in _KINDS)
        return weights

    def put(self, places: NDArray[np.intp], columns: Columns) -> None:
        """Fills some places."""
        for own, given in zip(self.columns, columns, strict=True):
            own[places] = given
        self._compare(columns)

    def _compare(self, columns: Columns) -> None:
        """Notes by which columns any places differ, given those that were filled."""
        if not len(columns[0]):
            return
        if self._sample is None:
            self._sample = tuple(column.item(0) for column in columns)
        for at, (given, sample) in enumerate(zip(columns, self._sample, strict=True)):
            self._differ[at] = self._differ[at] or bool((given != sample).any())
        self.criteria = tuple(compress(self.columns, self._differ))
        self.break_budgets = self.break_budgets or bool(columns[0].any())


class Candidates(msgspec.Struct, frozen=True, eq=False):
    """Nodes on which evicting helps. Victims are listed with the most important first."""

    rows: NDArray[np.intp]
    #: Where each of them is in the columns of the weights.
    places: NDArray[np.intp]
    weights: VictimWeights
    #: Names the victims of the node at a position.
    victims: Callable[[int], tuple[Pod, ...]]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def columns(self) -> Columns:
        """Returns what the victims weigh, per position."""
        return tuple(column.take(self.places) for column in self.weights.columns)

    @property
    def violations(self) -> NDArray[np.int64]:
        """Returns how many budgets evicting breaks, per position."""
        violations: NDArray[np.int64] = self.weights.columns[0].take(self.places)
        return violations

    @classmethod
    def of(cls, found: Sequence[tuple[int, tuple[Pod, ...], int]]) -> Candidates:
        """Makes candidates from rows with their victims and the number of broken budgets."""
        weighed = [(broken, *weigh(victims)) for _, victims, broken in found]
        columns = zip(*weighed, strict=True) if weighed else ((),) * len(_KINDS)
        made = zip(columns, _KINDS, strict=True)
        return cls.weighed(
            np.array([row for row, _, _ in found], np.intp),
            tuple(np.array(column, kind) for column, kind in made),
            lambda at: found[at][1],
        )

    @classmethod
    def weighed(
        cls, rows: NDArray[np.intp], columns: Columns, victims: Callable[[int], tuple[Pod, ...]]
    ) -> Candidates:
        """Makes candidates with columns of their own."""
        return cls(rows, np.arange(len(rows)), VictimWeights(columns), victims)

    def followed_by(self, other: Candidates) -> Candidates:
        """Returns these candidates, then the others."""
        own = len(self)
        pairs = zip(self.columns, other.columns, strict=True)
        return Candidates.weighed(
            np.concatenate((self.rows, other.rows)),
            tuple(np.concatenate(pair) for pair in pairs),
            lambda at: self.victims(at) if at < own else other.victims(at - own),
        )

    def first(self, count: int) -> Candidates:
        """Returns the first ones, up to a number."""
        return Candidates(self.rows[:count], self.places[:count], self.weights, self.victims)

    def enough(self, wanted: int) -> int | None:
        """Returns how many were needed to have that many, with one that breaks no budget."""
        if len(self.rows) < wanted or not len(self.rows):
            return None
        if not self.weights.break_budgets:
            return max(wanted, 1)
        violations = self.violations
        least = int(violations.argmin())
        return None if violations[least] else max(wanted, least + 1)

    def best(self) -> int:
        """Returns the position of the best: each criterion decides among equals of the earlier."""
        left: NDArray[np.intp] | None = None
        # By many a criterion, all are equal.
        for column in self.weights.criteria:
            weights = column.take(self.places if left is None else self.places[left])
            lowest = (weights == np.minimum.reduce(weights)).nonzero()[0]
            left = lowest if left is None else left[lowest]
        return 0 if left is None else left.item(0)


def weigh(victims: Sequence[Pod]) -> tuple[int, int, int, float]:
    """Returns what victims weigh, but for the budgets that evicting them breaks.

    The first victim counts as the most important. An extender may have named a lesser one first.
    """
    highest = max(pod.priority for pod in victims)
    return (
        victims[0].priority,
        sum(pod.priority + PRIORITY_SHIFT for pod in victims),
        len(victims),
        -min(start_of(pod) for pod in victims if pod.priority == highest),
    )


#: No node at all.
NO_CANDIDATES = Candidates.of(())
