"""The scores of rows for a class of like pods, their totals, and the best row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes, RowFacts, Rows
from moorage.cluster.arrays import freeze
from moorage.cluster.changes import ChangeLog
from moorage.framework.calls import SCORING, ask_normalize, ask_score
from moorage.framework.plugin import MAX_SCORE, UPDATED, Reduction, Scores
from moorage.framework.plugin_fence import check_range, make_plugin_error

from .batch import Batch, DomainBatch, LevelBatch, Turns
from .parts import Asked, ScoreColumn, Unserved

# All keys of a `DomainBatch` are smaller than this, so that they fit 64 bits.
MOST_KEY = 2**61

# Finding the largest key takes a hundredth of the time of ranking all rows by heaps. So heaps are
# made only after so many pods were decided since many rows last changed at once.
_CALM = 100

# A ranking by levels that is more than this many changes behind is made anew.
_MOST_BEHIND = 256


class ClassScores:
    """Columns of raw numbers and their totals. While there is a ranking, totals may be outdated.

    `bits` belongs to the class: such pods fit on a row if none of its bits is set.
    """

    def __init__(self, columns: list[ScoreColumn], bits: NDArray[np.int64], nodes: Nodes) -> None:
        self.columns = columns
        self._bits = bits
        #: The numbers of all rows, including those without a node.
        self.everything = freeze(np.arange(len(bits)))
        self._nodes = nodes
        self._normalized = [each for each in columns if each.plugin.reduces is Reduction.LARGEST]
        self.ranking: Batch | None = None
        #: A ranking of all rows by one key per row. It suits classes that take turns with other
        #: classes: `Batch` would push every row that the pods of these have changed.
        self._whole: DomainBatch | None = None
        #: A ranking of all rows by levels.
        self._by_level: LevelBatch | None = None
        #: How many pods were decided since many rows last changed at once, up to `_CALM`.
        self._served = _CALM
        #: A ranking of some rows: those that were asked about last.
        self._among: DomainBatch | None = None
        self._asked: NDArray[np.intp] | None = None
        #: By plugin, the number by which others are normalised, and how many rows have it.
        self._largest: dict[str, tuple[int, int]] = {}
        self._largest_total = MAX_SCORE * sum(each.weight for each in columns)
        self._add_up()

    def refresh(
        self, rows: NDArray[np.intp], columns: list[ScoreColumn], before: NDArray[np.int64]
    ) -> None:
        """Updates many rows that have changed at once; `before` has their bits before."""
        if self._is_behind and not (self._whole is None and self._among is None):
            self._add_up()
        bits = self._bits[rows]
        # A row that begins or ceases to fit may change the number by which others are normalised.
        stale = bool(self._normalized) and bool(((before == 0) != (bits == 0)).any())
        for column in columns:
            scores = ask_score(column.plugin, column.prepared, self._nodes, rows)
            if column.is_plain:
                check_range(scores)
                if not self._is_behind:
                    gain = (scores - column.raw[rows]) * column.weight
                    self.plain[rows] += gain
                    self.totals[rows] += gain
            elif not np.array_equal(scores, column.raw[rows]):
                stale = True
            column.raw[rows] = scores
        self._served = 0
        if stale:
            self._normalize()
        else:
            self._rank(rows, bits == 0)

    def _rank(self, rows: NDArray[np.intp], fits: NDArray[np.bool_]) -> None:
        """Updates the rankings by keys for many rows, and drops the ranking by heaps."""
        self.ranking = None
        for ranking in (self._whole, self._among):
            if ranking is not None:
                ranking.put_together(rows, fits, self.totals[rows])

    def _normalize(self) -> None:
        """Drops the rankings; totals are computed anew when they are next asked for.

        A pod with one feasible row, or none, does not ask for them.
        """
        self.ranking = self._whole = self._among = None
        self._largest = {}
        self._is_behind = True

    def _add_up(self) -> None:
        """Computes all totals anew from the numbers of all rows."""
        #: The weighted sums of the plugins whose numbers are used without normalising.
        self.plain: Scores = np.zeros(len(self._bits), np.int64)
        for column in self.columns:
            if column.is_plain:
                self.plain += column.raw * column.weight
        self.totals: Scores = self.plain.copy()
        self._largest = {}
        feasible = np.flatnonzero(self._bits == 0)
        for column in self._normalized if len(feasible) else ():
            among = column.raw[feasible]
            largest = int(among.max())
            count = int(np.count_nonzero(among == largest))
            self._largest[column.plugin.name] = largest, count
            column.flat = None
            normal = self._normal(column, feasible)
            if (column.raw == column.raw[0]).all():
                column.flat = int(normal[0])
            self.totals[feasible] += normal
        self._is_behind = False

    def _normal(self, column: ScoreColumn, rows: Rows) -> Scores:
        """Returns what a normalised column adds to totals of rows, if just these are feasible."""
        return ask_normalize(column.plugin, column.prepared, column.raw[rows]) * column.weight

    def leave(self, row: int) -> None:
        """Removes a row on which such pods no longer fit. `enter` will update its numbers."""
        if self._moves_largest(row):
            self._normalize()
            return
        for ranking in (self.ranking, self._whole, self._among):
            if ranking is not None:
                ranking.drop(row)

    def enter(self, facts: RowFacts, asked: Asked) -> None:
        """Adds a row on which such pods fit again."""
        row, gain = facts.number, self._rescore(facts, asked)
        if gain is None or self._raises_largest(row):
            self._normalize()
            return
        total = self._total(row)
        for ranking in (self._whole, self._among):
            if ranking is not None:
                ranking.put(row, total)
        if self.ranking is None:
            self.plain[row] += gain
            self.totals[row] = total
        else:
            self._is_behind = True
            self.ranking.put(row, total)

    def move(self, facts: RowFacts, asked: Asked) -> None:
        """Updates a changed row on which such pods fit."""
        row, gain = facts.number, self._rescore(facts, asked)
        if gain is None:
            self._normalize()
            return
        if not gain:
            return
        if self._whole is not None:
            self._whole.move(row, gain)
        if self._among is not None:
            self._among.move(row, gain)
        if self.ranking is not None:
            # The ranking suffices for the next decisions, so totals are not updated.
            self._is_behind = True
            self.ranking.move(row, gain)
        else:
            self.plain[row] += gain
            self.totals[row] += gain

    def _rescore(self, facts: RowFacts, asked: Asked) -> int | None:
        """Updates the numbers of a row; returns by how much its total grows.

        None if totals of other rows may change, too.
        """
        known: tuple[int, ...] | None = None
        if asked.are_columns_alike:
            known = asked.numbers.get(facts.known_figures or facts.figures)
        if known is None:
            return self._ask_anew(facts, asked)
        row, gain = facts.number, 0
        for column, after in zip(asked.columns, known, strict=True):
            raw = column.raw
            gain += (after - raw.item(row)) * column.weight
            raw[row] = after
        return gain

    def _ask_anew(self, facts: RowFacts, asked: Asked) -> int | None:
        """Does what `_rescore` does by asking each plugin."""
        row, gain = facts.number, 0
        numbers = []
        moves = False
        for column in asked.columns:
            before = column.raw.item(row)
            try:
                answer = column.rescore(column.prepared, self._nodes, facts, column.raw)
            except Exception as error:
                raise make_plugin_error(SCORING, column.plugin, error) from error
            if answer is not UPDATED:
                rows = np.array([row])
                column.raw[row] = ask_score(column.plugin, column.prepared, self._nodes, rows)[0]
            after = column.raw.item(row)
            if column.is_plain and not 0 <= after <= MAX_SCORE:
                raise Unserved
            numbers.append(after)
            gain += (after - before) * column.weight
            # While this number stays, so does the number by which others are normalised.
            moves = moves or (not column.is_plain and after != before)
        if asked.are_columns_alike:
            asked.keep_numbers(facts.figures, tuple(numbers))
        return None if moves else gain

    def _total(self, row: int) -> int:
        """Returns the total of a feasible row, from its numbers."""
        total = sum(each.raw.item(row) * each.weight for each in self.columns if each.is_plain)
        for column in self._normalized:
            largest, _ = self._largest[column.plugin.name]
            pair = np.array([column.raw[row], largest])
            normal = ask_normalize(column.plugin, column.prepared, pair)
            total += normal.item(0) * column.weight
        return total

    def _moves_largest(self, row: int) -> bool:
        """Returns whether the removal of a row changes the number by which others are normalised.

        If not, counts one row fewer that has this number.
        """
        for column in self._normalized:
            largest, count = self._largest.get(column.plugin.name, (0, 0))
            if column.raw.item(row) == largest:
                if count <= 1:
                    return True
                self._largest[column.plugin.name] = largest, count - 1
        return False

    def _raises_largest(self, row: int) -> bool:
        """Returns whether a new row changes the number by which others are normalised.

        If not, counts one row more that has this number.
        """
        for column in self._normalized:
            largest, count = self._largest.get(column.plugin.name, (0, 0))
            if not count or column.raw.item(row) > largest:
                return True
            if column.raw.item(row) == largest:
                self._largest[column.plugin.name] = largest, count + 1
        return False

    def best(self, turns: Turns) -> int | None:
        """Returns the best row by a ranking, which is made if there is none; None without a row."""
        ranking = self.ranking
        if ranking is None or ranking.turns is not turns or ranking.changes_left < 0:
            has_keys = self._served < _CALM and self._fits_keys(turns)
            if has_keys:
                self._served += 1
                if self._whole is not None and self._whole.turns is turns:
                    return self._whole.best()
            rows = np.flatnonzero(self._bits == 0)
            if len(rows) <= 1:
                return rows.item(0) if len(rows) else None
            if has_keys:
                return self._rank_whole(turns).best()
            if self._is_behind:
                self._add_up()
            ranking = self.ranking = Batch(rows, self.totals[rows], turns)
            self._whole = None
        return ranking.best()

    def rank_among(self, rows: NDArray[np.intp], turns: Turns) -> DomainBatch | None:
        """Returns a ranking of some rows, as if there were no others.

        None if normalised numbers would depend on these rows, or if they are asked about for the
        first time.
        """
        known = self._among
        if known is not None and known.rows is rows and known.turns is turns:
            return known
        is_first, self._asked = self._asked is not rows, rows
        if is_first or not self._fits_keys(turns):
            # A ranking is worth making only for rows that are asked about again.
            return None
        if self._normalized and not self._largest:
            self._add_up()
        if any(column.flat is None for column in self._normalized):
            # Normalised numbers depend on which rows are feasible.
            return None
        if rows is self.everything:
            return self._rank_whole(turns)
        if self._is_behind:
            self._add_up()
        self._among = DomainBatch(rows, self._bits[rows] == 0, self.totals[rows], turns)
        return self._among

    def _rank_whole(self, turns: Turns) -> DomainBatch:
        """Returns a ranking of all rows by keys."""
        known = self._whole
        if known is None or known.turns is not turns:
            if self._is_behind:
                self._add_up()
            known = self._whole = DomainBatch(self.everything, self._bits == 0, self.totals, turns)
        return known

    def rank_levels(
        self, ranking: DomainBatch, places: NDArray[np.intp], log: ChangeLog
    ) -> LevelBatch:
        """Returns a ranking of all rows by levels.

        If `places` is the array of the last call, its values differ only for rows that changed.
        """
        known = self._by_level
        if known is not None and known.ranking is ranking and known.places is places:
            is_too_old = known.changes_left < 0 or known.reader.distance > _MOST_BEHIND
            changed = None if is_too_old else known.reader.read()
            if changed is not None:
                known.catch_up(changed.rows)
                return known
        self._by_level = LevelBatch(ranking, places, log)
        return self._by_level

    def _fits_keys(self, turns: Turns) -> bool:
        return (self._largest_total + 1) * len(turns.turn_of) < MOST_KEY

    def totals_of(self, feasible: Rows) -> Scores:
        """Returns the totals of rows, if just these are feasible, in a new array."""
        if self._is_behind:
            self._normalize()
            self._add_up()
        totals = self.plain.copy() if isinstance(feasible, slice) else self.plain[feasible]
        for column in self._normalized:
            totals += self._normal(column, feasible) if column.flat is None else column.flat
        return totals
