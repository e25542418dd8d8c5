"""The best row by the scores of a class, however rows change: one by one, or many at once."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from moorage.cluster import Nodes, RowFacts, Rows
from moorage.engine.classes.batch import Turns
from moorage.engine.classes.parts import Asked, ScoreColumn
from moorage.engine.classes.scores import ClassScores
from moorage.framework.plugin import Reduction, Rescore, Score, Scores

COUNT = 6
UNFIT = 1


class Numbers(Score[None]):
    """Gives the numbers that it is told."""

    name = "Numbers"
    reduces = Reduction.NOTHING

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = np.array(numbers)

    def score(self, prepared: None, nodes: Nodes, rows: Rows) -> Scores:
        return self.numbers[rows].copy()

    def rescore(self, prepared: None, nodes: Nodes, row: RowFacts, scores: Scores) -> Rescore:
        return Rescore.UNKNOWN


class Ranked:
    """Scores of a class, and what the best row is by looking at all of them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.plugin = plugin = Numbers([random.randrange(4) for _ in range(COUNT)])
        self.order = random.sample(range(COUNT), COUNT)
        self.turns = Turns.of(np.array(self.order), COUNT, 0)
        self.bits = np.zeros(COUNT, np.int64)
        raw = plugin.numbers.copy()
        self.column = ScoreColumn(plugin, None, 1, 2, raw, True, plugin.rescore)
        nodes = cast(Any, SimpleNamespace(count=len, views={}, whole=None))
        self.scores = ClassScores([self.column], self.bits, nodes)
        self.asked = Asked([], [self.column])
        #: All rows, or half of them.
        self.some = self.scores.everything[: random.choice((COUNT // 2, COUNT))]

    def change_one(self) -> None:
        row = self.random.randrange(COUNT)
        before, now = self.bits[row], self.random.choice((0, 0, UNFIT))
        self.plugin.numbers[row] = self.random.randrange(4)
        self.bits[row] = now
        facts = cast(Any, SimpleNamespace(number=row))
        if now and not before:
            self.scores.leave(row)
        elif before and not now:
            self.scores.enter(facts, self.asked)
        elif not now:
            self.scores.move(facts, self.asked)

    def change_many(self) -> None:
        rows = np.array(sorted(self.random.sample(range(COUNT), 3)))
        before = self.bits[rows]
        for row in rows:
            self.plugin.numbers[row] = self.random.randrange(4)
            self.bits[row] = self.random.choice((0, 0, UNFIT))
        all_before = self.bits.copy()
        all_before[rows] = before
        # Rows that did not fit are scored with the others.
        self.scores.refresh(self.scores.everything, [self.column], all_before)

    def check_all(self) -> None:
        assert self.scores.best(self.turns) == self._best(range(COUNT))

    def check_some(self) -> None:
        ranking = self.scores.rank_among(self.some, self.turns)
        if ranking is not None:
            assert ranking.best() == self._best(self.some.tolist())

    def _best(self, among: Any) -> int | None:
        fit = [row for row in self.order if row in among and not self.bits[row]]
        return max(fit, key=self.plugin.numbers.__getitem__) if fit else None


@pytest.mark.parametrize("seed", range(200))
def test_the_best_row_is_that_of_all_rows(seed: int) -> None:
    ranked = Ranked(Random(seed))
    steps = (ranked.change_one, ranked.change_many, ranked.check_all, ranked.check_some)
    for _ in range(60):
        ranked.random.choice(steps)()
