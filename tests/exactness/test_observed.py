"""Being looked at changes nothing: with an observer and without, an engine asks for the same."""

from __future__ import annotations

from itertools import count
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import Phase, given, settings

from moorage.app.observations import Observations
from moorage.engine import Engine
from moorage.engine.actions import Action, encode
from moorage.engine.classes.classes import ClassSettings
from moorage.engine.events import Event
from moorage.framework.observe import Observer
from tests.exactness.four_ways import configuration, profile
from tests.exactness.outsiders import OUTSIDERS, WITH_OUTSIDERS
from tests.exactness.streams import Shape, World


class Restless(Observations):
    """Looks at every plugin, by a clock that jumps to and fro."""

    def __init__(self, seed: int) -> None:
        super().__init__(clock=lambda: self._random.uniform(-1e9, 1e9))
        self._random = Random(seed)

    def attempt_began(self) -> float:
        began = super().attempt_began()
        self.is_sampling = True
        return began


class Counting(Observer):
    """Counts the hooks that were called."""

    def __init__(self) -> None:
        ticks = count()
        super().__init__(clock=lambda: float(next(ticks)))
        self.begun = 0

    def attempt_began(self) -> float:
        self.begun += 1
        self.is_sampling = self.begun % 2 == 0
        return self.clock()


@pytest.mark.parametrize("reuse", [True, False], ids=["reuse", "no reuse"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=6, phases=(Phase.explicit, Phase.reuse, Phase.generate))
def test_observers_change_no_decision(reuse: bool, seed: int) -> None:
    enabled = {"multiPoint": {"enabled": [{"name": each.name} for each in OUTSIDERS]}}
    using = configuration(profile(plugins=enabled) if seed % 2 else None, WITH_OUTSIDERS)
    kept = ClassSettings(classes=reuse, batches=reuse)
    observers: list[Observer] = [Observations(), Restless(seed), Counting()]
    plain = Engine(using, WITH_OUTSIDERS, kept)
    observed = [Engine(using, WITH_OUTSIDERS, kept, observer) for observer in observers]

    def handle(events: list[Event], now: float) -> None:
        for event in events:
            for engine in (plain, *observed):
                engine.handle(event, now)

    world = World(seed, Shape())
    handle(list(world.opening()), world.now)
    for _ in range(world.shape.turns):
        handle(list(world.turn()), world.now)
        budget = world.random.choice([1, 3, 10])
        expected = plain.step(world.now, budget)
        for engine in observed:
            assert _encoded(engine.step(world.now, budget)) == _encoded(expected)
        handle(list(world.perform(expected)), world.now)


def _encoded(actions: list[Action]) -> list[bytes]:
    return [encode(action) for action in actions]
