"""The exactness law: with classes and batches on or off, every decision is the same.

Ties, messages, preemption and all. A fifth opinion decides on a cluster that is counted anew.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import Phase, given, settings

from moorage.cluster import ChangeLog, cluster as cluster_module
from moorage.config import Configuration, FeatureGates, default, load_mapping
from moorage.engine.actions import BindPod, EvictPod, PodRef
from moorage.engine.classes.statistics import DecisionPath
from moorage.framework.profile import known_plugins
from moorage.objects.coexist import is_exclusive
from moorage.objects.kinds import READ_KINDS
from moorage.objects.node import HOSTNAME, ZONE
from moorage.simulate.verdicts import Scenario, read_scenarios
from tests.builders import Manifest
from tests.exactness.four_ways import FourWays, configuration, profile, run
from tests.exactness.outsiders import OUTSIDERS, WITH_OUTSIDERS
from tests.exactness.streams import COEXISTING, Shape, World
from tests.registered import REGISTRY

GOLDEN = Path(__file__).parents[1] / "golden"
SEEDS = st.integers(0, 2**32 - 1)
DEFAULT = configuration()


def trying(share: float) -> settings:
    """As many streams as the profile has examples, or a share of them. Seeds do not shrink."""
    count = max(1, int(settings().max_examples * share))
    return settings(max_examples=count, phases=(Phase.explicit, Phase.reuse, Phase.generate))


def arguments(plugin: str, **args: Any) -> Manifest:
    return profile(pluginConfig=[{"name": plugin, "args": args}])


def strategy(kind: str, **given: Any) -> Manifest:
    resources = [{"name": "cpu", "weight": 3}, {"name": "example.com/gpu", "weight": 2}]
    scoring = {"type": kind, "resources": resources, **given}
    return arguments("NodeResourcesFit", scoringStrategy=scoring)


def without(*plugins: str, point: str = "multiPoint") -> Manifest:
    return profile(plugins={point: {"disabled": [{"name": name} for name in plugins]}})


def constraint(key: str, when: str, skew: int = 1) -> Manifest:
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when}


SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 60, "score": 9}]
WEIGHTS = [{"name": "ImageLocality", "weight": 7}, {"name": "TaintToleration", "weight": 11}]
SMALLEST = profile(
    plugins={"score": {"enabled": [{"name": "CoexistPolicy", "weight": 10}]}},
    pluginConfig=[{"name": "CoexistPolicy", "args": {"preferSmallestNode": True}}],
)
NOBODY = PodRef("", "", "")
PREFERENCE = {
    "weight": 5,
    "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
}
CONFIGURATIONS: dict[str, Manifest] = {
    "most allocated": strategy("MostAllocated"),
    "a ratio": strategy("RequestedToCapacityRatio", requestedToCapacityRatio={"shape": SHAPE}),
    "no inter-pod affinity": without("InterPodAffinity"),
    "neither spread nor affinity": without("InterPodAffinity", "PodTopologySpread"),
    "nothing is scored": without("*", point="score"),
    "list of constraints": arguments(
        "PodTopologySpread",
        defaultingType="List",
        defaultConstraints=[
            constraint(ZONE, "DoNotSchedule"),
            constraint(HOSTNAME, "ScheduleAnyway", 2),
        ],
    ),
    "no default constraints": arguments(
        "PodTopologySpread", defaultingType="List", defaultConstraints=[]
    ),
    "weights": profile(plugins={"multiPoint": {"enabled": WEIGHTS}}),
    "terms of running pods weigh": arguments("InterPodAffinity", hardPodAffinityWeight=50),
    "terms of running pods are ignored": arguments(
        "InterPodAffinity", ignorePreferredTermsOfExistingPods=True
    ),
    "added affinity": arguments(
        "NodeAffinity",
        addedAffinity={"preferredDuringSchedulingIgnoredDuringExecution": [PREFERENCE]},
    ),
    "balanced over three": arguments(
        "NodeResourcesBalancedAllocation",
        resources=[{"name": "cpu"}, {"name": "memory"}, {"name": "example.com/gpu"}],
    ),
}


@given(SEEDS)
@trying(0.3)
def test_every_way_decides_the_same(seed: int) -> None:
    run(seed, DEFAULT)


@pytest.mark.parametrize("raw", [{}, CONFIGURATIONS["a ratio"]], ids=["default", "a ratio"])
@given(seed=SEEDS)
@trying(0.06)
def test_amounts_beyond_what_columns_hold(raw: Manifest, seed: int) -> None:
    """Nodes that lie and pods that ask for everything fail nobody's attempt."""
    run(seed, configuration(raw), Shape(extreme=True, turns=25))


@pytest.mark.parametrize("most_classes", [1, 2])
@given(seed=SEEDS)
@trying(0.06)
def test_with_few_classes(most_classes: int, seed: int) -> None:
    """A class that is forgotten is only slower."""
    run(seed, DEFAULT, most_classes=most_classes)


@pytest.mark.parametrize("raw", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
@given(seed=SEEDS)
@trying(0.06)
def test_with_other_configurations(raw: Manifest, seed: int) -> None:
    run(seed, configuration(raw))


@given(SEEDS)
@trying(0.2)
def test_with_exclusive_pods(seed: int) -> None:
    """Exclusive and ordinary pods in turn, with evictions and places that are kept."""
    run(seed, DEFAULT, COEXISTING)


@given(SEEDS)
@trying(0.1)
def test_with_exclusive_pods_that_prefer_small_nodes(seed: int) -> None:
    run(seed, configuration(SMALLEST), COEXISTING)


def test_streams_of_exclusive_pods_try_what_they_are_for() -> None:
    """Exclusive pods are placed by their class, fail, and evict others or are evicted."""
    ways: Counter[DecisionPath] = Counter()
    placed, evicted = Counter[bool](), Counter[bool]()
    for seed in range(12):
        world, made = World(seed, COEXISTING), FourWays(DEFAULT, recounts=False)
        made.handle(world.opening(), world.now)
        for _ in range(40):
            made.handle(world.turn(), world.now)
            actions = made.step(world.now, 3)
            for action in actions:
                counts = {BindPod: placed, EvictPod: evicted}.get(type(action))
                pod = made.engines["no reuse"].cluster.pod(getattr(action, "pod", NOBODY).uid)
                if counts is not None and pod is not None:
                    counts[is_exclusive(pod)] += 1
            made.handle(world.perform(actions), world.now)
        ways += made.ways

    assert min(placed[True], placed[False]) > 50
    assert min(evicted[True], evicted[False]) > 3
    assert ways.keys() >= {
        DecisionPath.BATCH,
        DecisionPath.COLUMNS,
        DecisionPath.FIRST,
        DecisionPath.FAILURE,
        DecisionPath.NOMINATED,
    }


@given(SEEDS)
@trying(0.06)
def test_with_several_profiles(seed: int) -> None:
    """Profiles share the cluster, and the place at which a search begins."""
    profiles = [
        {"schedulerName": "default-scheduler"},
        {"schedulerName": "packing", **strategy("MostAllocated")["profiles"][0]},
        {"schedulerName": "quick", "percentageOfNodesToScore": 50},
    ]
    profiles[1]["schedulerName"] = "packing"
    names = ("default-scheduler", "packing", "quick")
    run(seed, configuration({"profiles": profiles}), Shape(schedulers=names))


@given(SEEDS)
@trying(0.04)
def test_when_not_all_nodes_are_looked_at(seed: int) -> None:
    ways = run(
        seed,
        configuration({"percentageOfNodesToScore": 50}),
        Shape(nodes=(105, 125), turns=8),
    )
    assert ways.keys() <= {DecisionPath.SAMPLING, DecisionPath.UNSIGNED}


@given(SEEDS)
@trying(0.04)
def test_when_many_rows_change_at_once(seed: int) -> None:
    run(seed, DEFAULT, Shape(nodes=(40, 60), turns=12))


@given(SEEDS)
@trying(0.06)
def test_those_who_lag_behind_begin_anew(seed: int) -> None:
    """The log of changes is cut short, as in a cluster where a class is not seen for long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster_module, "ChangeLog", partial(ChangeLog, keep=3))
        patch.setattr(ChangeLog, "grow", lambda log, rows: None)
        run(seed, DEFAULT)


@pytest.mark.parametrize("name", [plugin.name for plugin in OUTSIDERS])
@given(seed=SEEDS)
@trying(0.06)
def test_with_plugins_from_elsewhere(name: str, seed: int) -> None:
    enabled = profile(plugins={"multiPoint": {"enabled": [{"name": name}]}})
    run(seed, configuration(enabled, WITH_OUTSIDERS), registry=WITH_OUTSIDERS)


def test_a_plugin_that_does_not_sign_leaves_reuse_on() -> None:
    enabled = profile(plugins={"multiPoint": {"enabled": [{"name": "Unsigned"}]}})
    ways = run(5, configuration(enabled, WITH_OUTSIDERS), registry=WITH_OUTSIDERS)

    assert ways[DecisionPath.COLUMNS]
    assert DecisionPath.OFF not in ways


def test_streams_make_decisions_in_every_way() -> None:
    """Otherwise they would prove nothing: most ways come up often, and nobody is left out."""
    ways = sum((run(seed, DEFAULT, recounts=False) for seed in range(12)), Counter[DecisionPath]())

    assert ways.keys() >= set(DecisionPath) - {
        DecisionPath.OFF,
        DecisionPath.SAMPLING,
        DecisionPath.UNSIGNED,
        DecisionPath.BROKEN,
    }
    for common in (
        DecisionPath.BATCH,
        DecisionPath.COLUMNS,
        DecisionPath.FIRST,
        DecisionPath.FAILURE,
    ):
        assert ways[common] > 50


# Recorded scenarios

# What extenders answer is no decision of ours: tests/engine/extenders compares with and without.
_SCENARIOS = [
    path.name.partition(".")[0]
    for path in sorted(GOLDEN.glob("*.jsonl.gz"))
    if not path.name.startswith("extender")
]


@pytest.mark.parametrize("category", _SCENARIOS)
def test_recorded_scenarios(category: str) -> None:
    """The clusters for which verdicts are recorded; here the engines go their own way."""
    scenarios = [each.scenario for each in read_scenarios(GOLDEN / f"{category}.jsonl.gz")]
    share = max(1, 200 // settings().max_examples)
    for scenario in scenarios[::share]:
        try:
            replay(scenario)
        except Exception as error:
            error.add_note(f"in scenario {scenario.name}")
            raise


def replay(scenario: Scenario) -> None:
    ways = FourWays(_configuration(scenario))
    world = World(0, Shape())
    for raw in (*scenario.objects, *scenario.pending):
        if raw.get("kind") in READ_KINDS:
            ways.handle(world.apply(raw["kind"], _with_uid(raw)), world.now)
    for _ in range(3 * len(scenario.pending)):
        world.now += 1.0
        ways.handle(world.perform(ways.step(world.now, 1)), world.now)
    ways.check()


def _with_uid(raw: Manifest) -> Manifest:
    """An object whose uid is its key, by which the outcome of an action finds it."""
    manifest = deepcopy(raw)
    metadata = manifest["metadata"]
    if manifest["kind"] in ("Pod", "PersistentVolumeClaim"):
        namespace = metadata.setdefault("namespace", "default")
        metadata["uid"] = f"{namespace}/{metadata['name']}"
        manifest.setdefault("status", {})
    return manifest


def _configuration(scenario: Scenario) -> Configuration:
    known, gates = known_plugins(REGISTRY), FeatureGates.parse(scenario.feature_gates)
    if scenario.config is None:
        return default(known, gates)
    return load_mapping(scenario.config, known=known, gates=gates, source=scenario.name)
