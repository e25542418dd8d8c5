"""The best of some rows: the highest total, and of equals the first in the visit order."""

from __future__ import annotations

from random import Random

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from moorage.cluster.changes import ChangeLog
from moorage.engine.classes.batch import DomainBatch, LevelBatch, Turns

TOTALS = st.lists(st.integers(0, 3), min_size=1, max_size=6)


@given(TOTALS, st.data())
def test_the_first_of_the_best_rows_that_fit_is_taken(
    totals: list[int], data: st.DataObject
) -> None:
    rows = range(len(totals))
    order = data.draw(st.permutations(rows))
    takes = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    fits = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    turns = Turns.of(np.array(order), len(rows), 0)
    batch = DomainBatch(np.arange(len(rows)), np.array(takes), np.array(totals), turns)

    def best(among: list[bool]) -> int | None:
        left = [row for row in order if takes[row] and among[row]]
        return max(left, key=lambda row: totals[row]) if left else None

    assert batch.best() == best([True] * len(rows))
    # A filter that looks at other rows accepts some of those that take such pods.
    among = [fit and take for fit, take in zip(fits, takes, strict=True)]
    assert batch.best_where(np.array(among)) == best(among)
    added = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    # Other scores add something to what is ranked.
    if any(among):
        totals_with = [total + more for total, more in zip(totals, added, strict=True)]
        left = np.flatnonzero(among)
        first = max((row for row in order if among[row]), key=totals_with.__getitem__)
        assert batch.best_with(np.array(added)[left], left) == first
    if all(takes):
        first = max(order, key=lambda row: totals[row] + added[row])
        assert batch.best_with(np.array(added), None) == first
    changed = data.draw(st.sampled_from(rows))
    totals[changed], takes[changed] = 4, True
    batch.put(changed, 4)
    assert batch.best_where(np.array(takes)) == best(takes)


@pytest.mark.parametrize("seed", range(100))
def test_by_levels_the_same_row_is_the_best(seed: int) -> None:
    random = Random(seed)
    count = random.randint(1, 6)
    order = random.sample(range(count), count)
    places = np.array([random.randrange(3) for _ in range(count)])
    totals = np.array([random.randrange(4) for _ in range(count)])
    turns = Turns.of(np.array(order), count, 0)
    ranking = DomainBatch(np.arange(count), np.ones(count, np.bool_), totals, turns)
    by_level = LevelBatch(ranking, places, ChangeLog())
    for _ in range(12):
        row = random.randrange(count)
        # It may get another total, another level, or take no such pod any more.
        if random.random() < 0.5:
            places[row] = random.randrange(3)
        if random.random() < 0.2:
            ranking.drop(row)
        elif random.random() < 0.7:
            ranking.put(row, random.randrange(4))
        by_level.catch_up([row])
        fits = np.flatnonzero(ranking.keys > 0)
        assert by_level.occurring.tolist() == sorted(set(places[fits].tolist()))
        if not len(fits):
            continue
        added = np.array([random.randrange(4) for _ in range(3)])
        expected = ranking.best_with(added[places[fits]], fits)
        assert by_level.best(added[by_level.occurring].tolist()) == expected
