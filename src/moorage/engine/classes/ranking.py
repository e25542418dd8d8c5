"""The sum of kept answers for each row, in one number by which rows are ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.row_view import RowView
from moorage.framework.calls import ask_normalize
from moorage.framework.plugin import MAX_SCORE, Scores

from .answers import ScoreAnswer, Unserved


@dataclass(frozen=True, slots=True)
class Column:
    """The numbers of a score with the weight that they have in totals."""

    answer: ScoreAnswer
    weight: int


class _Follower:
    """Takes changed answers into the keys of a ranking."""

    def __init__(self, ranking: Ranking, weight: int) -> None:
        self.ranking, self.weight = ranking, weight

    def move(self, row: int, before: Any, after: Any) -> None:
        """Notes that the numbers by which others are normalised may have changed."""
        self.ranking.is_summed = False

    def renew(self, values: NDArray[Any]) -> None:
        self.ranking.is_summed = False


class _Gains(_Follower):
    """Adds what a plain score gains to the keys of rows."""

    def move(self, row: int, before: Any, after: Any) -> None:
        ranking = self.ranking
        if ranking.is_summed:
            keys = ranking.keys
            # Plain numbers are added faster than those of an array.
            keys[row] = keys.item(row) + (after - before) * self.weight * ranking.size


class _Rejections(_Follower):
    """Takes a rejection off the keys of rows, or gives it back."""

    def move(self, row: int, before: Any, after: Any) -> None:
        ranking = self.ranking
        if ranking.is_summed:
            ranking.keys[row] += ranking.rejected if before else -ranking.rejected
            ranking.fitting = None
            # What scores are normalised by may have come or gone with the row.
            ranking.is_summed = not ranking.is_uneven


class Ranking:
    """One key per row: its total, and its turn among equals. The row with the largest is the best.

    A row fits if its key is above 0.
    """

    def __init__(
        self, filters: Sequence[RowView[np.bool_]], columns: Sequence[Column], rows: int
    ) -> None:
        self._filters = filters
        self._columns = columns
        self._largest_total = MAX_SCORE * sum(each.weight for each in columns)
        #: How many rows there are, those without a node among them.
        self.size = rows
        self.keys: NDArray[np.int64] = np.zeros(rows, np.int64)
        #: What scores add to keys that are normalised over the rows that fit; None if nothing.
        self.normal: NDArray[np.int64] | None = None
        #: Whether which rows fit decides what normalised scores add.
        self.is_uneven = False
        #: Whether the keys are the sum of all answers.
        self.is_summed = False
        #: The rows that fit; None until they are listed.
        self.fitting: NDArray[np.intp] | None = None
        self.turns: NDArray[np.intp] | None = None
        self._following: list[tuple[RowView[Any], _Follower]] = []
        #: Each filter that rejects a row takes so much off its key. All keys of rows that fit are
        #: smaller, and all filters together still fit 64 bits.
        self.rejected = np.iinfo(np.int64).max // (len(filters) + 1)
        for view in filters:
            self._follow(view, _Rejections(self, 0))
        for column in columns:
            kind = _Gains if column.answer.is_plain else _Follower
            self._follow(column.answer, kind(self, column.weight))

    def _follow(self, view: RowView[Any], follower: _Follower) -> None:
        view.follow(follower)
        self._following.append((view, follower))

    def close(self) -> None:
        """Ends following the answers, which others may use."""
        for view, follower in self._following:
            view.unfollow(follower)

    def sum(self, turns: NDArray[np.intp]) -> None:
        """Makes sure that the keys are up to date with the answers, which are."""
        if turns is not self.turns:
            self._take_turns(turns)
        if not self.is_summed:
            self._sum_all(turns)

    def _take_turns(self, turns: NDArray[np.intp]) -> None:
        before, self.turns = self.turns, turns
        if before is None or len(before) != len(turns):
            self.is_summed = False
        else:
            self.keys += before - turns

    def _sum_all(self, turns: NDArray[np.intp]) -> None:
        size = len(turns)
        if size != self.size:
            self.size = size
            self.keys = np.zeros(size, np.int64)
        if (self._largest_total + 1) * size >= self.rejected:
            raise Unserved
        keys = self.keys
        np.subtract(size, turns, out=keys)
        for column in self._columns:
            if column.answer.is_plain:
                keys += column.answer.values * (column.weight * size)
        for view in self._filters:
            keys -= view.values * np.int64(self.rejected)
        self.fitting = None
        self.is_summed = True
        self.normal = None
        normalized = self._normalized
        # Equal numbers are the same to all rows, whichever fit.
        self.is_uneven = not all(each.answer.is_flat for each in normalized)
        fitting = self.list_fitting()
        if normalized and len(fitting) > 1:
            added = self._normalize(normalized, fitting) * size
            if self.is_uneven:
                self.normal = np.zeros(size, np.int64)
                self.normal[fitting] = added
                keys += self.normal

    def _normalize(self, columns: Sequence[Column], rows: NDArray[np.intp]) -> Any:
        """Returns what normalised scores add to the totals of rows, if just these are feasible."""
        total: Any = 0
        for column in columns:
            answer = column.answer
            if answer.prepared is not None:
                raw = answer.values[rows]
                normal = ask_normalize(answer.plugin, answer.prepared, raw)
                total = total + normal * column.weight
        return total

    # Of all rows that fit

    def list_fitting(self) -> NDArray[np.intp]:
        """Returns the rows that fit."""
        if self.fitting is None:
            self.fitting = (self.keys > 0).nonzero()[0]
        return self.fitting

    def best(self) -> int | None:
        """Returns the best of all rows; None if none fits."""
        row = self.keys.argmax()
        return row.item() if self.keys.item(row) > 0 else None

    # Of some rows

    def best_of(self, rows: NDArray[np.intp], added: Scores | None) -> int:
        """Returns the best of some rows that fit, after numbers are added to their keys."""
        keys = self.keys if len(rows) == self.size else self.keys[rows]
        if self.normal is not None and len(rows) != len(self.list_fitting()):
            keys = keys - self.normal[rows]
            keys += self._normalize(self._normalized, rows) * self.size
        if added is not None:
            keys = np.add(added, keys, out=added)
        return rows.item(keys.argmax())

    def totals_of(self, rows: NDArray[np.intp]) -> Scores:
        """Returns the totals of rows, if just these are feasible."""
        totals = np.zeros(len(rows), np.int64)
        for column in self._columns:
            if column.answer.is_plain:
                totals += column.answer.values[rows] * column.weight
        return totals + self._normalize(self._normalized, rows)

    @property
    def _normalized(self) -> list[Column]:
        return [each for each in self._columns if not each.answer.is_plain]
