"""The exactness law with exclusive pods, GPU nodes and disks all at once."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from mooring.config import Configuration
from mooring.engine.actions import Action, RecordEvent
from mooring.engine.classes.statistics import DecisionPath
from tests.exactness.four_ways import FourWays, configuration, profile, run
from tests.exactness.streams import Shape
from tests.exactness.templates import GPU
from tests.exactness.test_four_ways import SEEDS, trying

TOGETHER = Shape(nodes=(6, 24), coexisting=True, disks=True)


def everything() -> Configuration:
    """CoexistPolicy is there by default; the others are asked for, and all of them score."""
    added = [{"name": name, "weight": 3} for name in ("GPUAware", "DiskIO", "QuietDisk")]
    return configuration(
        profile(
            plugins={"multiPoint": {"enabled": added}},
            pluginConfig=[
                {"name": "GPUAware", "args": {"resources": [GPU]}},
                {"name": "CoexistPolicy", "args": {"preferSmallestNode": True}},
            ],
        )
    )


@given(seed=SEEDS)
@trying(0.1)
def test_every_way_decides_the_same(seed: int) -> None:
    run(seed, everything(), shape=TOGETHER)


def test_the_streams_meet_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise they would prove nothing."""
    notes: list[str] = []
    plain = FourWays.step

    def step(ways: FourWays, now: float, budget: int) -> list[Action]:
        actions = plain(ways, now, budget)
        notes.extend(each.note for each in actions if isinstance(each, RecordEvent))
        return actions

    monkeypatch.setattr(FourWays, "step", step)
    ways = sum(
        (run(seed, everything(), shape=TOGETHER, recounts=False) for seed in range(8)),
        Counter[DecisionPath](),
    )

    for reason in ("failed CoexistPolicy", "node(s) with GPUs only take", "disk"):
        assert sum(reason in note for note in notes) > 4, reason
    assert sum(count for way, count in ways.items() if way.is_reuse) > 40
