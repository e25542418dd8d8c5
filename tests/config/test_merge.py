"""Which plugins run at which point, in which order, with which weight."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.config import (
    POINTS,
    ConfigError,
    EnabledPlugin,
    FeatureGates,
    KnownPlugin,
    default,
)
from moorage.config.plugin_sets import PluginSet, expand, merge
from tests.config.fakes import KNOWN, loaded, names, off, on, only, weights

PRE_FILTER = [
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
]
FILTER = ["NodeUnschedulable", "NodeName", "TaintToleration", *PRE_FILTER]
SCORE = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
MINIMAL = off("*") | on("PrioritySort", "DefaultBinder")


def without(plugins: list[str], *gone: str) -> list[str]:
    return [name for name in plugins if name not in gone]


def reweighted(**changed: int) -> dict[str, int]:
    return SCORE | changed


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ("preEnqueue", ["SchedulingGates", "DynamicResources", "DefaultPreemption"]),
        ("queueSort", ["PrioritySort"]),
        ("preFilter", PRE_FILTER),
        ("filter", FILTER),
        ("postFilter", ["DynamicResources", "DefaultPreemption"]),
        (
            "preScore",
            [
                "TaintToleration",
                "NodeAffinity",
                "NodeResourcesFit",
                "VolumeBinding",
                "PodTopologySpread",
                "InterPodAffinity",
                "NodeResourcesBalancedAllocation",
            ],
        ),
        ("score", list(SCORE)),
        ("reserve", ["VolumeBinding", "DynamicResources"]),
        ("permit", []),
        ("preBind", ["VolumeBinding", "DynamicResources"]),
        ("bind", ["DefaultBinder"]),
        ("postBind", []),
    ],
)
def test_the_default_profile(point: str, expected: list[str]) -> None:
    assert names(only(default(KNOWN)), point) == expected


def test_every_point_is_present_and_weights_count_at_score_only() -> None:
    profile = only(default(KNOWN))

    assert tuple(profile.points) == POINTS
    assert weights(profile) == SCORE
    assert {
        plugin.weight for point in POINTS if point != "score" for plugin in profile.points[point]
    } == {0}


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param(
            {"multiPoint": off("NodePorts", "NodeResourcesFit")},
            without(FILTER, "NodePorts", "NodeResourcesFit"),
            id="disabled in multiPoint",
        ),
        pytest.param(
            {"filter": off("TaintToleration", "NodePorts")},
            without(FILTER, "TaintToleration", "NodePorts"),
            id="disabled at the point",
        ),
        pytest.param(
            {"filter": on("NodeResourcesFit", "NodePorts", "NodeAffinity")},
            [
                "NodeResourcesFit",
                "NodePorts",
                "NodeAffinity",
                *without(FILTER, "NodeResourcesFit", "NodePorts", "NodeAffinity"),
            ],
            id="enabled at the point and in multiPoint: moved to the front",
        ),
        pytest.param(
            {"filter": on("NodePorts") | off("NodePorts")},
            [*without(FILTER, "NodePorts"), "NodePorts"],
            id="disabled and enabled at the point: moved to the end",
        ),
        pytest.param(
            {"filter": on("NodePorts") | off("*")},
            ["NodePorts"],
            id="everything else disabled at the point",
        ),
        pytest.param({"filter": off("*")}, [], id="everything disabled at the point"),
        pytest.param(
            {"multiPoint": off("NodePorts"), "filter": on("NodePorts")},
            [*without(FILTER, "NodePorts"), "NodePorts"],
            id="enabled at the point only: at the end",
        ),
        pytest.param(
            {"multiPoint": MINIMAL, "filter": on("NodePorts", "NodeName")},
            ["NodePorts", "NodeName"],
            id="nothing but the point",
        ),
        pytest.param(
            {"multiPoint": on("NodeName", "TaintToleration")},
            FILTER,
            id="enabled again in multiPoint: stays in place",
        ),
        pytest.param(
            {"multiPoint": on("NodeName") | off("NodeName")},
            [*without(FILTER, "NodeName"), "NodeName"],
            id="disabled and enabled in multiPoint: moved to the end",
        ),
        pytest.param(
            {"multiPoint": {"enabled": MINIMAL["enabled"] + on("NodeName")["enabled"]} | off("*")},
            ["NodeName"],
            id="all defaults disabled in multiPoint",
        ),
        pytest.param({"filter": None, "multiPoint": {"enabled": None}}, FILTER, id="null"),
        pytest.param({"score": off("*")}, FILTER, id="another point"),
    ],
)
def test_filter_plugins(plugins: dict[str, Any], expected: list[str]) -> None:
    assert names(only(loaded({"plugins": plugins})), "filter") == expected


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param(
            {"multiPoint": on(NodeAffinity=9, NodeResourcesFit=9)},
            reweighted(NodeAffinity=9, NodeResourcesFit=9),
            id="weight in multiPoint",
        ),
        pytest.param(
            {"score": on(TaintToleration=7)},
            reweighted(TaintToleration=7),
            id="weight at score",
        ),
        pytest.param(
            {"multiPoint": on(TaintToleration=9), "score": on(TaintToleration=7)},
            reweighted(TaintToleration=7),
            id="score beats multiPoint",
        ),
        pytest.param(
            {"score": on("TaintToleration")},
            reweighted(TaintToleration=1),
            id="named at score without a weight: 1, not the default weight",
        ),
        pytest.param(
            {"multiPoint": on(TaintToleration=0)},
            reweighted(TaintToleration=1),
            id="weight 0 is 1",
        ),
        pytest.param(
            {"score": off("*") | on(ImageLocality=1)},
            {"ImageLocality": 1},
            id="a single score plugin",
        ),
        pytest.param({"score": off("*"), "preScore": off("*")}, {}, id="no score plugin at all"),
        pytest.param(
            {
                "score": off("ImageLocality", "NodeResourcesFit")
                | on(ImageLocality=20, NodeResourcesFit=5)
            },
            {
                name: SCORE[name]
                for name in without(list(SCORE), "ImageLocality", "NodeResourcesFit")
            }
            | {"ImageLocality": 20, "NodeResourcesFit": 5},
            id="replaced at score",
        ),
    ],
)
def test_score_plugins(plugins: dict[str, Any], expected: dict[str, int]) -> None:
    # Items, because the order counts too.
    assert list(weights(only(loaded({"plugins": plugins}))).items()) == list(expected.items())


def test_a_plugin_that_is_no_default_is_appended_wherever_it_extends() -> None:
    known = KNOWN | {"Gpu": KnownPlugin(frozenset({"filter", "score", "permit"}))}
    profile = only(loaded({"plugins": {"multiPoint": on(Gpu=5)}}, known=known))

    assert names(profile, "filter") == [*FILTER, "Gpu"]
    assert names(profile, "permit") == ["Gpu"]
    assert list(weights(profile).items()) == [*SCORE.items(), ("Gpu", 5)]


def test_a_default_plugin_that_is_not_known_is_left_out() -> None:
    known = {name: plugin for name, plugin in KNOWN.items() if name != "DynamicResources"}
    profile = only(default(known))

    assert names(profile, "filter") == without(FILTER, "DynamicResources")
    assert "DynamicResources" not in profile.args


def test_a_gate_that_is_off_takes_its_plugin_out_of_the_default_profile() -> None:
    gates = FeatureGates(NodeDeclaredFeatures=False)

    assert names(only(default(KNOWN, gates)), "filter") == without(FILTER, "NodeDeclaredFeatures")


@pytest.mark.parametrize("point", ["filter", "multiPoint"])
def test_a_plugin_whose_gate_is_off_is_not_enabled_by_name(point: str) -> None:
    gates = FeatureGates(NodeDeclaredFeatures=False)

    with pytest.raises(ConfigError) as caught:
        loaded({"plugins": {point: on("NodeDeclaredFeatures")}}, gates=gates)

    assert str(caught.value).endswith(
        'profiles[0].plugins: plugin "NodeDeclaredFeatures" is enabled, '
        "but the feature gate of that name is off"
    )


def test_a_default_plugin_of_our_own_is_none_that_kube_scheduler_knows() -> None:
    with pytest.raises(ConfigError, match='unknown plugin "CoexistPolicy"'):
        loaded({"plugins": {"filter": on("CoexistPolicy")}})


def test_a_custom_queue_sort_needs_the_default_one_disabled() -> None:
    known = KNOWN | {"Fifo": KnownPlugin(frozenset({"queueSort"}))}
    plugins = {"queueSort": on("Fifo") | off("PrioritySort")}

    assert names(only(loaded({"plugins": plugins}, known=known)), "queueSort") == ["Fifo"]


def test_merging_keeps_what_the_default_disables() -> None:
    a, b = EnabledPlugin("A"), EnabledPlugin("B", 2)
    merged = merge(
        PluginSet((a,), frozenset({"X"})), PluginSet((b, EnabledPlugin("A", 4)), frozenset({"Y"}))
    )

    assert merged == PluginSet((EnabledPlugin("A", 4), b), frozenset({"X", "Y"}))


def test_expansion_orders_overriding_then_spread_then_other_plugins() -> None:
    here = PluginSet(tuple(map(EnabledPlugin, "ZBA")), frozenset({"D"}))
    spread = PluginSet(tuple(map(EnabledPlugin, "ABCDE")))

    expanded = expand("filter", here, spread, "ABCDZ")

    assert [plugin.name for plugin in expanded] == ["B", "A", "C", "Z"]
