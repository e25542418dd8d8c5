"""The exactness law where GPUAware is on: in both modes, with preemption, classes and batches."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from moorage.config import Configuration
from moorage.engine.actions import Action, BindPod, EvictPod, RecordEvent
from moorage.engine.classes.statistics import DecisionPath
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.exactness.four_ways import ON_AND_OFF, FourWays, configuration, profile, run
from tests.exactness.templates import GPU
from tests.exactness.test_four_ways import SEEDS, trying
from tests.exactness.test_traps import Told

MODES = ("Filter", "Score")


def gpu_aware(mode: str, *, remembers: bool = False) -> Configuration:
    args = {
        "mode": mode,
        "resources": [GPU],
        "rememberGPUNodes": remembers,
        # Streams set and remove this one, and run pods of this image.
        "gpuNodeLabels": ["disk"],
        "devicePluginImages": [{"image": "db"}],
    }
    # As much as all other scores together, so that the mode Score matters.
    enabled = {"multiPoint": {"enabled": [{"name": "GPUAware", "weight": 5}]}}
    return configuration(
        profile(plugins=enabled, pluginConfig=[{"name": "GPUAware", "args": args}])
    )


@pytest.mark.parametrize("remembers", [False, True])
@pytest.mark.parametrize("mode", MODES)
@given(seed=SEEDS)
@trying(0.16)
def test_every_way_decides_the_same(mode: str, remembers: bool, seed: int) -> None:
    run(seed, gpu_aware(mode, remembers=remembers))


def sharing() -> Configuration:
    """A reserve for free GPUs, pods that make way, and the score that avoids fragments."""
    aware = {
        "resources": [GPU],
        "reservePerFreeGPU": {"cpu": "500m", "memory": "1Gi"},
        "learnReserve": True,
        "backfillBelowPriority": 1,
    }
    typical = [{"gpus": 1, "cpu": 2, "weight": 3}, {"gpus": 2, "cpu": 4, "memory": "4Gi"}]
    enabled = [{"name": "GPUAware", "weight": 2}, {"name": "GPUFragmentation", "weight": 5}]
    fragments = {"resources": [GPU], "typicalPods": typical}
    return configuration(
        profile(
            plugins={"multiPoint": {"enabled": enabled}},
            pluginConfig=[
                {"name": "GPUAware", "args": aware},
                {"name": "GPUFragmentation", "args": fragments},
            ],
        )
    )


@given(seed=SEEDS)
@trying(0.05)
def test_every_way_decides_the_same_where_gpu_nodes_are_shared(seed: int) -> None:
    run(seed, sharing(), ways=ON_AND_OFF)


def test_the_streams_meet_gpu_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise they would prove nothing: nodes are kept, pods evicted and answers reused."""
    asked: list[Action] = []
    plain = FourWays.step

    def step(ways: FourWays, now: float, budget: int) -> list[Action]:
        actions = plain(ways, now, budget)
        asked.extend(actions)
        return actions

    monkeypatch.setattr(FourWays, "step", step)
    using = gpu_aware("Filter", remembers=True)
    ways = sum((run(seed, using, recounts=False) for seed in range(12)), Counter[DecisionPath]())

    notes = [each.note for each in asked if isinstance(each, RecordEvent)]
    assert sum("node(s) with GPUs only take" in note for note in notes) > 50
    assert sum(isinstance(each, EvictPod) for each in asked) > 5
    for common in (
        DecisionPath.BATCH,
        DecisionPath.COLUMNS,
        DecisionPath.FIRST,
        DecisionPath.FAILURE,
    ):
        assert ways[common] > 10


# Traps


def daemon(name: str) -> Pod:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agents", "controller": True}
    return pod(name, metadata={"ownerReferences": [owner]})


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param("Filter", {"w1": None, "d1": "gpu", "w2": None, "d2": "gpu"}, id="Filter"),
        pytest.param("Score", {"w1": "gpu", "d1": "gpu", "w2": "gpu", "d2": "gpu"}, id="Score"),
    ],
)
def test_who_controls_a_pod_tells_it_from_its_like(
    mode: str, expected: dict[str, str | None]
) -> None:
    told = Told(node("gpu", **{GPU: 1}), using=gpu_aware(mode))

    assert told.places(pod("w1"), daemon("d1"), pod("w2"), daemon("d2")) == expected


@pytest.mark.parametrize("mode", MODES)
def test_a_run_of_like_pods_follows_a_node_that_gains_gpus(mode: str) -> None:
    """The emptier node is the best of all, until it has GPUs."""
    told = Told(node("large", cpu=64), node("small", cpu=8), using=gpu_aware(mode))
    pods = [pod(f"p{at}", cpu=1) for at in range(6)]

    assert told.places(*pods[:2]) == {"p0": "large", "p1": "large"}
    told.apply(node("large", cpu=64, **{GPU: 1}))
    assert told.places(*pods[2:4]) == {"p2": "small", "p3": "small"}
    told.apply(node("large", cpu=64))
    assert told.places(*pods[4:]) == {"p4": "large", "p5": "large"}


@pytest.mark.parametrize(
    ("mode", "victims"),
    [
        pytest.param("Filter", {"on-plain"}, id="only where the pod may go"),
        pytest.param("Score", {"on-gpu", "on-plain"}, id="one after the other"),
    ],
)
def test_like_pods_that_preempt(mode: str, victims: set[str]) -> None:
    told = Told(
        # The victims of a GPU node come first if it is a candidate: they matter less.
        node("gpu", **{GPU: 1}),
        node("plain"),
        pod("on-gpu", node="gpu", cpu=4, spec={"priority": 1}),
        pod("on-plain", node="plain", cpu=4, spec={"priority": 2}),
        using=gpu_aware(mode),
    )
    told.apply(*(pod(f"p{at}", cpu=4, spec={"priority": 9}) for at in range(2)))

    asked = [action for _ in range(3) for action in told.ways.step(told.now, 1)]

    assert {each.pod.name for each in asked if isinstance(each, EvictPod)} == victims
    assert not any(isinstance(each, BindPod) for each in asked)
