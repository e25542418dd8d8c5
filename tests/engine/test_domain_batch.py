"""The best of some rows: the highest total, and of equals the first in the visit order."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from mooring.engine.classes.batch import DomainBatch, Turns

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
