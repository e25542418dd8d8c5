"""The exactness law with exclusive pods, GPU nodes and disks all at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given

from moorage.config import Configuration
from moorage.engine.actions import Action, RecordEvent
from moorage.engine.classes.statistics import DecisionPath
from tests.exactness.four_ways import ON_AND_OFF, FourWays, configuration, profile, run
from tests.exactness.streams import Shape
from tests.exactness.templates import GPU
from tests.exactness.test_auto_signatures import WITH_READER
from tests.exactness.test_counted import counted_args
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


def all_of_ours() -> Configuration:
    """All that comes with Moorage and is off by default, and a plugin that is signed by tracing."""
    names = (
        "GPUAware",
        "GPUFragmentation",
        "DiskIO",
        "QuietDisk",
        "CountedResources",
        "CountedPools",
        "ExclusiveNodeLimits",
        "Reader",
    )
    aware = {
        "resources": [GPU],
        "reservePerFreeGPU": {"cpu": "200m", "memory": "200Mi"},
        "learnReserve": True,
        "backfillBelowPriority": 1,
    }
    typical = [{"gpus": 1, "cpu": 1, "weight": 3}, {"gpus": 2, "cpu": 4}]
    given = [
        {"name": "GPUAware", "args": aware},
        {"name": "GPUFragmentation", "args": {"resources": [GPU], "typicalPods": typical}},
        {"name": "ExclusiveNodeLimits", "args": {"maxNodesPerNamespace": 4}},
        {"name": "CoexistPolicy", "args": {"preferSmallestNode": True}},
        *counted_args(),
    ]
    enabled = [{"name": name, "weight": 3} for name in names]
    raw = profile(plugins={"multiPoint": {"enabled": enabled}}, pluginConfig=given)
    return configuration(raw, WITH_READER, AutoSignatures=True)


@given(seed=SEEDS)
@trying(0.04)
def test_every_way_decides_the_same_with_all_of_ours(seed: int) -> None:
    shape = replace(TOGETHER, grouped=True)
    run(seed, all_of_ours(), shape, registry=WITH_READER, ways=ON_AND_OFF, recounts=False)


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
