"""What kube-scheduler's plugins do for groups of pods, which the engine does here.

A file may name them wherever kube-scheduler's own may. It is checked that the file asks for what
the engine does; only the plugins that make room for groups can be chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
    if gates["TopologyAwareWorkloadScheduling"]:
        if not points["placementGenerate"]:
            yield "placementGenerate", _refuse(_GENERATOR, "TopologyAwareWorkloadScheduling")
        yield from _find_other_scores(points)


def _find_other_scores(points: Points) -> Iterator[tuple[str, str]]:
    """Yields whether domains are to be scored by other plugins than the engine scores them by."""
    runs = {plugin.name for point in POINTS for plugin in points[point]}
    wanted = {name: 1 for name in (_FIT, _COUNT) if name in runs | {_COUNT}}
    found = {plugin.name: plugin.weight for plugin in points["placementScore"]}
    if found != wanted:
        weighted = [f"{name} with weight {weight}" for name, weight in found.items()]
        yield (
            "placementScore",
            f"must enable {_list(wanted)} with weight 1 in Moorage, got {_list(weighted)}",
        )


def _refuse(name: str, gate: str) -> str:
    return (
        f"plugin {describe(name)} cannot be disabled in Moorage while the feature gate {gate} is on"
    )


def _names(points: Points, point: str) -> list[str]:
    return [plugin.name for plugin in points[point]]


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
