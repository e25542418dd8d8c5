"""The best row by the sum of kept answers, however these change: one by one, or many at once."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from moorage.engine.classes.answers import Unserved
from moorage.engine.classes.ranking import Column, Ranking
from moorage.framework.plugin import Scores, normalize_scores


class Largest:
    """Normalises by the largest number."""

    name = "Largest"

    def normalize(self, prepared: object, scores: Scores) -> Scores:
        return normalize_scores(scores)


class Values:
    """Answers that change when they are told to."""

    def __init__(self, values: list[int], *, is_plain: bool = True) -> None:
        self.values: NDArray[Any] = np.array(values)
        self.is_plain, self.plugin, self.prepared = is_plain, Largest(), 1
        self.followers: list[Any] = []

    @property
    def is_flat(self) -> bool:
        return len(set(self.values.tolist())) == 1

    def follow(self, follower: Any) -> None:
        self.followers.append(follower)
        follower.renew(self.values)

    def unfollow(self, follower: Any) -> None:
        self.followers.remove(follower)

    def put(self, row: int, value: Any) -> None:
        before, self.values[row] = self.values.item(row), value
        if before != value:
            for each in self.followers:
                each.move(row, before, value)

    def put_all(self, values: list[Any]) -> None:
        self.values = np.array(values)
        for each in self.followers:
            each.renew(self.values)


class Ranked:
    """A ranking, and what the best row is by looking at all of them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.count = random.randint(1, 7)
        self.filters = [Values(self._draw_flags()) for _ in range(2)]
        self.plain = Values(self._draw_numbers())
        self.normalized = Values(self._draw_numbers(), is_plain=False)
        self.ranking = Ranking(
            cast(Any, self.filters),
            [Column(cast(Any, self.plain), 3), Column(cast(Any, self.normalized), 1)],
            self.count,
        )
        self.turn()

    def turn(self) -> None:
        """Other nodes come first; sometimes there are more of them."""
        if self.random.random() < 0.3:
            self.count += 1
            self.renew()
        self.order = self.random.sample(range(self.count), self.count)
        self.turns = np.argsort(self.order)

    def renew(self) -> None:
        for each in self.filters:
            each.put_all(self._draw_flags())
        for each in (self.plain, self.normalized):
            each.put_all(self._draw_numbers())

    def change(self) -> None:
        row = self.random.randrange(self.count)
        if self.random.random() < 0.5:
            self.random.choice(self.filters).put(row, self.random.random() < 0.4)
        else:
            self.random.choice((self.plain, self.normalized)).put(row, self.random.randrange(3))

    def check(self) -> None:
        self.ranking.sum(self.turns)
        fits = [row for row in range(self.count) if not any(f.values[row] for f in self.filters)]
        assert self.ranking.list_fitting().tolist() == fits
        assert self.ranking.best() == self._find_best(fits, [0] * self.count)
        some = [row for row in fits if self.random.random() < 0.7]
        added = [self.random.randrange(60) for _ in range(self.count)]
        if some:
            rows = np.array(some)
            assert self.ranking.best_of(rows, None) == self._find_best(some, [0] * self.count)
            found = self.ranking.best_of(rows, np.array(added)[rows] * self.ranking.size)
            assert found == self._find_best(some, added)
            assert self.ranking.totals_of(rows).tolist() == list(self._find_totals(some).values())

    def _find_totals(self, rows: list[int]) -> dict[int, int]:
        normal = normalize_scores(self.normalized.values[rows]).tolist()
        plain = self.plain.values
        return {row: 3 * plain.item(row) + more for row, more in zip(rows, normal, strict=True)}

    def _find_best(self, rows: list[int], added: list[int]) -> int | None:
        totals = self._find_totals(rows) if rows else {}
        among = [row for row in self.order if row in totals]
        return max(among, key=lambda row: totals[row] + added[row], default=None)

    def _draw_flags(self) -> list[Any]:
        return [self.random.random() < 0.3 for _ in range(self.count)]

    def _draw_numbers(self) -> list[int]:
        most = self.random.choice((1, 3))
        return [self.random.randrange(most) for _ in range(self.count)]


@pytest.mark.parametrize("seed", range(200))
def test_the_best_row_is_that_of_all_answers(seed: int) -> None:
    ranked = Ranked(Random(seed))
    for _ in range(60):
        ranked.random.choice((ranked.change, ranked.change, ranked.check))()
        if ranked.random.random() < 0.05:
            ranked.random.choice((ranked.renew, ranked.turn))()
            ranked.turn()


def test_a_ranking_that_is_closed_follows_nothing() -> None:
    ranked = Ranked(Random(0))
    ranked.ranking.close()

    answers = (*ranked.filters, ranked.plain, ranked.normalized)
    assert [each.followers for each in answers] == [[], [], [], []]


def test_what_does_not_fit_a_key_is_not_ranked() -> None:
    rows = Values([0])
    many = cast(Any, [Values([False]) for _ in range(32)])
    heavy = Ranking(many, [Column(cast(Any, rows), 2**52)], 1)
    with pytest.raises(Unserved):
        heavy.sum(np.array([0]))
