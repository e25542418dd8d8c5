"""The exactness law with everything at once. `python -m tools.streams` tries more streams."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given

from moorage.engine.classes.statistics import DecisionPath
from tests.exactness.everything import ALL_AT_ONCE, CROWDED, EVERYTHING, WIDE, everything
from tests.exactness.four_ways import ON_AND_OFF, configuration, run
from tests.exactness.streams import Shape
from tests.exactness.test_four_ways import SEEDS, trying


@pytest.mark.parametrize("shape", [ALL_AT_ONCE, CROWDED, WIDE], ids=["all", "crowded", "wide"])
@given(seed=SEEDS)
@trying(0.04)
def test_with_plugins_of_others(shape: Shape, seed: int) -> None:
    run(seed, everything(), shape, registry=EVERYTHING, recounts=False)


@given(seed=SEEDS)
@trying(0.05)
def test_with_stateful_sets(seed: int) -> None:
    """Volumes of their own, attachments, limits and controllers that come and go."""
    run(seed, configuration(), Shape(stateful=True))


def test_streams_with_plugins_of_others_reuse_answers() -> None:
    """Otherwise they would prove nothing."""
    paths = Counter[DecisionPath]()
    for seed in range(5):
        for shape in (replace(CROWDED, turns=20), WIDE):
            paths += run(
                seed, everything(), shape, registry=EVERYTHING, recounts=False, ways=ON_AND_OFF
            )

    for path in (DecisionPath.BATCH, DecisionPath.COLUMNS):
        assert paths[path] > 3, path
