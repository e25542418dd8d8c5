"""What kube-scheduler's plugins do for groups of pods, which the engine does here.

A file may name them wherever kube-scheduler's own may. It is checked that the file asks for what
the engine does; only the plugins that make room for groups can be chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from moorage.documents.errors import describe

from .gates import FeatureGates
from .plugin_sets import GROUP_PLUGINS, GROUP_POST_FILTER, POINTS, EnabledPlugin, KnownPlugin

#: The points at which kube-scheduler asks about groups.
GROUP_POINTS = ("placementGenerate", "placementScore", GROUP_POST_FILTER)

_GANG, _GENERATOR, _COUNT = "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"
_FIT = "NodeResourcesFit"

# What each plugin extends for groups.
_EXTENDS = {
    _GANG: {"preEnqueue", "permit"},
    _GENERATOR: {"placementGenerate"},
    _COUNT: {"placementScore"},
    _FIT: {"placementScore"},
    "DynamicResources": {GROUP_POST_FILTER},
    "DefaultPreemption": {GROUP_POST_FILTER},
}

Points = Mapping[str, tuple[EnabledPlugin, ...]]


def add_group_plugins(known: Mapping[str, KnownPlugin]) -> dict[str, KnownPlugin]:
    """Returns the plugins that a file may name, with those for groups and their points."""
    own = {name: KnownPlugin(frozenset()) for name in GROUP_PLUGINS}
    return {
        name: replace(plugin, points=plugin.points | _EXTENDS.get(name, frozenset()))
        for name, plugin in {**known, **own}.items()
    }


def drop_group_plugins(points: Points, gates: FeatureGates) -> Points:
    """Returns the plugins that run, point by point."""
    runs = {
        point: tuple(plugin for plugin in points[point] if plugin.name not in GROUP_PLUGINS)
        for point in POINTS
    }
    if gates["GenericWorkload"] and gates.version.has_group_post_filter:
        runs[GROUP_POST_FILTER] = points[GROUP_POST_FILTER]
    return runs


def find_group_problems(points: Points, gates: FeatureGates) -> Iterator[tuple[str, str]]:
    """Yields the points at which a file asks for something else than the engine does."""
    if gates["GenericWorkload"]:
        for point in sorted(_EXTENDS[_GANG]):
            if _GANG not in _names(points, point):
                yield point, _refuse(_GANG, "GenericWorkload")
    if gates["TopologyAwareWorkloadScheduling"] and not points["placementGenerate"]:
        yield "placementGenerate", _refuse(_GENERATOR, "TopologyAwareWorkloadScheduling")


def find_placement_weights(points: Points, gates: FeatureGates) -> dict[str, int] | None:
    """Returns the weights by which topology domains are scored; None where that is no choice."""
    if not gates["TopologyAwareWorkloadScheduling"]:
        return None
    return {plugin.name: plugin.weight for plugin in points["placementScore"]}


def _refuse(name: str, gate: str) -> str:
    return (
        f"plugin {describe(name)} cannot be disabled in Moorage while the feature gate {gate} is on"
    )


def _names(points: Points, point: str) -> list[str]:
    return [plugin.name for plugin in points[point]]
