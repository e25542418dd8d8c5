"""What a configuration may say about the plugins that decide groups in kube-scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.config import GROUP_POST_FILTER, FeatureGates, default
from moorage.config.kubernetes_versions import DEFAULT_VERSION, VERSIONS, KubernetesVersion
from tests.config.fakes import KNOWN, loaded, off, on, refused

NEW = VERSIONS[-1]
GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}


def fixed(name: str, gate: str) -> str:
    return f'plugin "{name}" cannot be disabled in Moorage while the feature gate {gate} is on'


@pytest.mark.parametrize(
    "plugins",
    [
        pytest.param({"placementGenerate": on("TopologyPlacementGenerator")}, id="generator"),
        pytest.param({"placementScore": on("PodGroupPodsCount")}, id="count"),
        pytest.param({"placementScore": on("NodeResourcesFit")}, id="fullness"),
        pytest.param({"multiPoint": on("PodGroupPodsCount", "GangScheduling")}, id="multiPoint"),
        pytest.param({"preEnqueue": on("GangScheduling")}, id="before the queue"),
        pytest.param({"score": on(NodeResourcesFit=5)}, id="weight for nodes only"),
        pytest.param(
            {"placementScore": off("*") | on("PodGroupPodsCount", "NodeResourcesFit")},
            id="off and on",
        ),
    ],
)
@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
@pytest.mark.parametrize("switched", [GATES, {}], ids=["gates on", "gates off"])
def test_what_the_engine_does_may_be_enabled(
    plugins: dict[str, Any], version: KubernetesVersion, switched: dict[str, bool]
) -> None:
    gates = FeatureGates(version, **switched)
    (read,) = loaded({"plugins": plugins}, gates=gates).profiles
    (usual,) = default(KNOWN, gates).profiles

    # The order at score may differ.
    assert {each: read.points[each] for each in read.points if each != "score"} == {
        each: usual.points[each] for each in usual.points if each != "score"
    }


@pytest.mark.parametrize(
    ("plugins", "found"),
    [
        pytest.param(
            {"multiPoint": off("GangScheduling")},
            [
                f"permit: {fixed('GangScheduling', 'GenericWorkload')}",
                f"preEnqueue: {fixed('GangScheduling', 'GenericWorkload')}",
            ],
            id="gangs",
        ),
        pytest.param(
            {"permit": off("*")},
            [f"permit: {fixed('GangScheduling', 'GenericWorkload')}"],
            id="gangs, by all",
        ),
        pytest.param(
            {"placementGenerate": off("*")},
            [
                "placementGenerate: "
                + fixed("TopologyPlacementGenerator", "TopologyAwareWorkloadScheduling")
            ],
            id="generator",
        ),
        pytest.param(
            {"podGroupPostFilter": on("ImageLocality")},
            [
                'podGroupPostFilter.enabled[0].name: plugin "ImageLocality" does not extend '
                "podGroupPostFilter"
            ],
            id="wrong point",
        ),
    ],
)
def test_what_the_engine_does_otherwise_is_refused(
    plugins: dict[str, Any], found: list[str]
) -> None:
    problems = refused({"plugins": plugins}, gates=FeatureGates(NEW, **GATES))

    assert problems == [f"profiles[0].plugins.{each}" for each in found]


@pytest.mark.parametrize(
    "point", ["multiPoint", "placementGenerate", "placementScore", "podGroupPostFilter"]
)
def test_without_groups_they_may_be_disabled(point: str) -> None:
    names = ("GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount")

    assert loaded({"plugins": {point: off(*names)}}, gates=FeatureGates(NEW)).profiles == (
        default(KNOWN, FeatureGates(NEW)).profiles
    )


@pytest.mark.parametrize(
    ("version", "found"), [(DEFAULT_VERSION, None), (NEW, ["DynamicResources"])]
)
def test_since_1_37_room_for_groups_is_made_by_plugins_of_their_own(
    version: KubernetesVersion, found: list[str] | None
) -> None:
    plugins = {"podGroupPostFilter": off("DefaultPreemption")}

    read = loaded({"plugins": plugins}, gates=FeatureGates(version, **GATES))

    chosen = read.profiles[0].points.get(GROUP_POST_FILTER)
    assert (chosen and [plugin.name for plugin in chosen]) == found


@pytest.mark.parametrize(
    ("plugins", "weights"),
    [
        pytest.param({}, {"NodeResourcesFit": 1, "PodGroupPodsCount": 1}, id="default"),
        pytest.param({"placementScore": off("*")}, {}, id="none"),
        pytest.param({"multiPoint": off("PodGroupPodsCount")}, {"NodeResourcesFit": 1}, id="one"),
        pytest.param(
            {"multiPoint": off("NodeResourcesFit")}, {"PodGroupPodsCount": 1}, id="the other"
        ),
        pytest.param(
            {"placementScore": on(NodeResourcesFit=2)},
            {"NodeResourcesFit": 2, "PodGroupPodsCount": 1},
            id="a weight",
        ),
        pytest.param(
            {"multiPoint": on(NodeResourcesFit=3)},
            {"NodeResourcesFit": 3, "PodGroupPodsCount": 1},
            id="a weight at all points",
        ),
    ],
)
def test_topology_domains_are_scored_by_the_configured_weights(
    plugins: dict[str, Any], weights: dict[str, int]
) -> None:
    read = loaded({"plugins": plugins}, gates=FeatureGates(NEW, **GATES))

    assert read.profiles[0].placement_weights == weights
