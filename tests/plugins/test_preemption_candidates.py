"""Which of the nodes where evicting helps is the best one."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from moorage.plugins.preemption.preemption_candidates import (
    Candidates,
    Columns,
    VictimWeights,
)

#: Budgets broken, highest priority, sum of priorities, number of victims, earliest start.
Weight = tuple[int, int, int, int, float]

EQUAL: Weight = (1, 5, 10, 2, 7.0)


def make_columns(weights: Sequence[Weight]) -> Columns:
    *figures, starts = (np.array(column) for column in zip(*weights, strict=True))
    return (*figures, -starts)


def weigh(*weights: Weight) -> Candidates:
    return Candidates.weighed(np.arange(len(weights)), make_columns(weights), lambda at: ())


@pytest.mark.parametrize(
    "better",
    [
        pytest.param((0, 9, 99, 9, 1.0), id="fewer broken budgets"),
        pytest.param((1, 4, 99, 9, 1.0), id="a lower highest priority"),
        pytest.param((1, 5, 9, 9, 1.0), id="a lower sum of priorities"),
        pytest.param((1, 5, 10, 1, 1.0), id="fewer victims"),
        pytest.param((1, 5, 10, 2, 8.0), id="victims that started later"),
    ],
)
def test_each_criterion_decides_among_those_equal_by_all_before_it(better: Weight) -> None:
    worse = (2, 0, 0, 0, 99.0)

    assert weigh(worse, EQUAL, EQUAL, better, EQUAL).best() == 3
    assert weigh(EQUAL, better).best() == 1


def test_of_equals_the_first_is_taken() -> None:
    assert weigh(EQUAL, EQUAL, EQUAL).best() == 0
    assert weigh((2, 0, 0, 0, 99.0), EQUAL, EQUAL).best() == 1


@pytest.mark.parametrize(
    ("violations", "wanted", "needed"),
    [
        pytest.param((0, 0, 0), 2, 2, id="as many as wanted"),
        pytest.param((1, 1, 0), 2, 3, id="on to the first that breaks no budget"),
        pytest.param((1, 1, 1), 2, None, id="all break one"),
        pytest.param((0, 0), 3, None, id="too few"),
    ],
)
def test_a_search_ends_with_one_that_breaks_no_budget(
    violations: tuple[int, ...], wanted: int, needed: int | None
) -> None:
    found = weigh(*((broken, 5, 10, 2, 7.0) for broken in violations))

    assert found.enough(wanted) == needed


figures = st.integers(0, 1)
weights = st.tuples(figures, figures, figures, figures, st.sampled_from((1.0, 2.0)))


@given(st.lists(st.lists(weights, min_size=1, max_size=4), min_size=1, max_size=4), st.randoms())
def test_columns_that_are_filled_in_portions_tell_the_same(
    portions: list[list[Weight]], random: Random
) -> None:
    everything = [weight for portion in portions for weight in portion]
    order = list(range(len(everything)))
    random.shuffle(order)
    filled = VictimWeights.nothing(len(everything))
    places = iter(order)
    for portion in portions:
        some = [next(places) for _ in portion]
        filled.put(np.array(some), make_columns(portion))
    kept = Candidates(np.array(order), np.array(order), filled, lambda at: ())

    plain = weigh(*everything)
    assert kept.best() == plain.best()
    assert [kept.enough(wanted) for wanted in range(4)] == [
        plain.enough(wanted) for wanted in range(4)
    ]
    assert kept.best() == min(
        range(len(everything)), key=lambda at: (*everything[at][:4], -everything[at][4], at)
    )
