"""Stand-ins for the default plugins: the points they extend and args like theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pytest

from moorage.config import (
    ConfigError,
    Configuration,
    FeatureGates,
    KnownPlugin,
    ProfileConfiguration,
    load_mapping,
)
from moorage.config.duration import Duration
from moorage.documents.conversion import convert
from moorage.documents.errors import Problems
from moorage.objects.meta import Wire
from moorage.objects.node_selector import NodeAffinityRules
from moorage.objects.placement_rules import TopologySpreadConstraint


class Resource(Wire, frozen=True):
    name: str
    weight: int = 1


class ShapePoint(Wire, frozen=True):
    utilization: int
    score: int = 0


class Ratio(Wire, frozen=True):
    shape: tuple[ShapePoint, ...] = ()


class Strategy(Wire, frozen=True):
    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[Resource, ...] = (Resource(name="cpu"), Resource(name="memory"))
    requested_to_capacity_ratio: Ratio | None = None


class FitArgs(Wire, frozen=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: Strategy = Strategy()

    def problems(self) -> Iterator[tuple[str, str]]:
        for index, resource in enumerate(self.scoring_strategy.resources):
            if not 1 <= resource.weight <= 100:
                where = f"scoringStrategy.resources[{index}].weight"
                yield where, f"must be between 1 and 100, got {resource.weight}"


class BalancedArgs(Wire, frozen=True):
    resources: tuple[Resource, ...] = (Resource(name="cpu"), Resource(name="memory"))


class InterPodAffinityArgs(Wire, frozen=True):
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Wire, frozen=True):
    added_affinity: NodeAffinityRules | None = None


class SpreadArgs(Wire, frozen=True):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"


class VolumeBindingArgs(Wire, frozen=True):
    bind_timeout_seconds: int = 600
    shape: tuple[ShapePoint, ...] | None = None


class PreemptionArgs(Wire, frozen=True):
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.min_candidate_nodes_percentage and not self.min_candidate_nodes_absolute:
            yield "", "minCandidateNodesPercentage and minCandidateNodesAbsolute are both 0"


class DynamicResourcesArgs(Wire, frozen=True):
    filter_timeout: Duration = Duration.of_seconds(10)


_FILTER = ("preFilter", "filter")

KNOWN = {
    name: KnownPlugin(frozenset(points), args)
    for name, points, args in (
        # Not in the order of the default profile: that order must come from the configuration.
        ("DefaultBinder", ("bind",), None),
        ("DefaultPreemption", ("preEnqueue", "postFilter"), PreemptionArgs),
        (
            "DynamicResources",
            ("preEnqueue", *_FILTER, "postFilter", "score", "reserve", "preBind"),
            DynamicResourcesArgs,
        ),
        ("ImageLocality", ("score",), None),
        ("InterPodAffinity", (*_FILTER, "preScore", "score"), InterPodAffinityArgs),
        ("NodeAffinity", (*_FILTER, "preScore", "score"), NodeAffinityArgs),
        ("NodeDeclaredFeatures", _FILTER, None),
        ("NodeName", ("filter",), None),
        ("NodePorts", _FILTER, None),
        ("NodeResourcesBalancedAllocation", ("preScore", "score"), BalancedArgs),
        ("NodeResourcesFit", (*_FILTER, "preScore", "score"), FitArgs),
        ("NodeUnschedulable", ("filter",), None),
        ("NodeVolumeLimits", _FILTER, None),
        ("PodTopologySpread", (*_FILTER, "preScore", "score"), SpreadArgs),
        ("PrioritySort", ("queueSort",), None),
        ("SchedulingGates", ("preEnqueue",), None),
        ("TaintToleration", ("filter", "preScore", "score"), None),
        (
            "VolumeBinding",
            (*_FILTER, "preScore", "score", "reserve", "preBind"),
            VolumeBindingArgs,
        ),
        ("VolumeRestrictions", _FILTER, None),
        ("VolumeZone", _FILTER, None),
    )
}


def written(*profiles: Any, **settings: Any) -> dict[str, Any]:
    """A configuration as a file holds it."""
    header = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    return header | ({"profiles": list(profiles)} if profiles else {}) | settings


def loaded(
    *profiles: Any,
    known: Mapping[str, KnownPlugin] = KNOWN,
    gates: FeatureGates | None = None,
    **settings: Any,
) -> Configuration:
    return load_mapping(written(*profiles, **settings), known=known, gates=gates)


def only(configuration: Configuration) -> ProfileConfiguration:
    (profile,) = configuration.profiles
    return profile


def refused(
    *profiles: Any,
    known: Mapping[str, KnownPlugin] = KNOWN,
    gates: FeatureGates | None = None,
    **settings: Any,
) -> list[str]:
    """The problems of a configuration that must not load."""
    with pytest.raises(ConfigError) as caught:
        loaded(*profiles, known=known, gates=gates, **settings)
    return [str(problem) for problem in caught.value.problems]


def converted(wanted: Any, raw: Any) -> tuple[Any, list[str]]:
    """The decoded value and what was wrong."""
    problems = Problems()
    value = convert(wanted, raw, "", problems)
    return value, [str(problem) for problem in problems]


def names(profile: ProfileConfiguration, point: str) -> list[str]:
    return [plugin.name for plugin in profile.points[point]]


def weights(profile: ProfileConfiguration) -> dict[str, int]:
    """The score plugins in their order, with their weights."""
    return {plugin.name: plugin.weight for plugin in profile.points["score"]}


def on(*plugins: str, **weighted: int) -> dict[str, Any]:
    """A plugin set that enables plugins."""
    return {
        "enabled": [{"name": name} for name in plugins]
        + [{"name": name, "weight": weight} for name, weight in weighted.items()]
    }


def off(*plugins: str) -> dict[str, Any]:
    """A plugin set that disables plugins."""
    return {"disabled": [{"name": name} for name in plugins]}
