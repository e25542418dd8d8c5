"""The figures of the demo are those of the scheduler's metrics."""

from __future__ import annotations

from itertools import count

import pytest

from moorage.app.observations import Observations
from moorage.config import default
from moorage.demo.demo_context import read_figures
from moorage.engine import Engine
from moorage.engine.events import Applied
from moorage.framework.profile import known_plugins
from moorage.plugins import REGISTRY
from tests.builders import node, pod

# Each look at the clock is so much later than the one before.
_TICK_SECONDS = 0.0001


def test_figures_of_a_time() -> None:
    ticks = count()
    observations = Observations(clock=lambda: next(ticks) * _TICK_SECONDS)
    engine = Engine(default(known_plugins(REGISTRY)), REGISTRY, observer=observations)
    for item in (node("n", cpu=64), pod("first", cpu=1), pod("second", cpu=1)):
        engine.handle(Applied(item), 0.0)
    engine.step(0.0, 10)
    before = read_figures(engine, observations)
    for at in range(20):
        engine.handle(Applied(pod(f"like-{at}", cpu=1)), 0.0)
    engine.step(0.0, 50)

    found = read_figures(engine, observations).since(before)

    assert before.decisions == 2
    assert before.reused_share == 0.5
    assert (found.decisions, found.by_batch + found.by_class) == (20, 20)
    assert found.buckets.sum() == 20
    assert found.reused_share == 1.0
    assert found.seconds == pytest.approx(20 * _TICK_SECONDS)
    assert found.p99_seconds == pytest.approx(0.00016)


@pytest.mark.parametrize(
    ("quick", "slow", "p99"), [(99, 1, 0.00032), (98, 2, 0.02048), (0, 1, 0.02048)]
)
def test_p99_is_a_bound_that_99_of_100_keep(quick: int, slow: int, p99: float) -> None:
    observations = Observations(clock=lambda: 0.0)
    engine = Engine(default(known_plugins(REGISTRY)), REGISTRY, observer=observations)
    observations.batch_durations("default-scheduler").extend([0.0003] * quick + [0.02] * slow)

    assert read_figures(engine, observations).p99_seconds == pytest.approx(p99)
