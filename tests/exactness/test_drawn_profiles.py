"""The exactness law for profiles at random, with devices, pools and gangs; see `drawn_profiles`."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from moorage.engine.classes.statistics import DecisionPath
from tests.exactness.drawn_profiles import Drawn, draw
from tests.exactness.everything import EVERYTHING
from tests.exactness.four_ways import ON_AND_OFF, run
from tests.exactness.test_four_ways import SEEDS, trying


def run_drawn(seed: int) -> Counter[DecisionPath]:
    drawn = draw(seed)
    return run(
        seed,
        drawn.configuration,
        drawn.shape,
        registry=EVERYTHING,
        most_classes=drawn.most_classes,
        recounts=False,
        ways=ON_AND_OFF,
    )


@given(seed=SEEDS)
@trying(0.04)
def test_every_profile_decides_the_same(seed: int) -> None:
    run_drawn(seed)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(91, id="what was prepared for a nominated pod serves its like"),
        pytest.param(345, id="and is no reason to wait for the devices of its victims"),
    ],
)
def test_streams_that_differed(seed: int) -> None:
    run_drawn(seed)


def test_a_seed_makes_one_profile() -> None:
    assert draw(3).text == draw(3).text
    assert draw(3).configuration == draw(3).configuration


def test_profiles_have_everything_in_turn() -> None:
    drawn = [draw(seed) for seed in range(60)]

    def count(what: str) -> int:
        return sum(what in each.text for each in drawn)

    for what in ("devices", "gangs", "disks", "coexisting", "stateful", "outsiders"):
        assert count(what) > 3, what
    for what in ("as 1.36", "as 1.37", "taint_rules"):
        assert count(what) > 3, what
    for what in ("without DynamicResources", "without NodeResourcesFit", "with CountedPools"):
        assert count(what) > 1, what
    assert len({each.text for each in drawn}) == len(drawn)


def test_streams_place_gangs_and_give_devices() -> None:
    """Otherwise they would prove nothing."""
    assert sum((run_drawn(seed) for seed in _with_both()), Counter()).total() > 50


def _with_both() -> list[int]:
    def has_both(drawn: Drawn) -> bool:
        return drawn.shape.devices and drawn.shape.gangs

    return [seed for seed in range(40) if has_both(draw(seed))][:3]
