"""Plugin sets: extension points, the default plugins, and how a file changes them."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

import msgspec

from .gates import FeatureGates

#: The extension points, as the configuration spells them, in the order in which they run.
POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)

#: Where room is made for a group of pods, in versions in which that is a point of its own.
GROUP_POST_FILTER = "podGroupPostFilter"

#: Stands for every point that a plugin extends; in files only.
MULTI_POINT = "multiPoint"


@dataclass(frozen=True, slots=True)
class KnownPlugin:
    """The points that a plugin extends, and the type of its args if it takes any."""

    points: frozenset[str]
    args: type[msgspec.Struct] | None = None


#: In `disabled`: every default plugin.
ALL = "*"


@dataclass(frozen=True, slots=True)
class EnabledPlugin:
    """A plugin at a point. Its weight is 0 at all points that score nothing."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PluginSet:
    """The plugins switched on and off at one point, or at all that they extend."""

    enabled: tuple[EnabledPlugin, ...] = ()
    disabled: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """The names of the enabled plugins."""
        return frozenset(plugin.name for plugin in self.enabled)


def merge(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Returns the default plugins as changed by a file: replaced in place, dropped, appended."""
    instead = {plugin.name: plugin for plugin in custom.enabled}
    kept = tuple(
        instead.get(plugin.name, plugin)
        for plugin in default.enabled
        if not custom.disabled & {plugin.name, ALL}
    )
    names = {plugin.name for plugin in kept}
    added = tuple(plugin for plugin in custom.enabled if plugin.name not in names)
    return PluginSet(kept + added, default.disabled | custom.disabled)


def expand(
    point: str, here: PluginSet, multi_point: PluginSet, extending: Container[str]
) -> tuple[EnabledPlugin, ...]:
    """Returns the plugins of a point in their final order.

    First come those enabled here as well as in multiPoint, in the order given here; then those that
    only multiPoint enables, if they extend the point and are not disabled here; then the others. An
    unknown default plugin extends nothing and is left out.
    """
    spread = tuple(
        plugin
        for plugin in multi_point.enabled
        if plugin.name in extending and not here.disabled & {plugin.name, ALL}
    )
    both = here.names & {plugin.name for plugin in spread}
    return tuple(
        _set_weight(plugin, point)
        for plugin in (
            *(plugin for plugin in here.enabled if plugin.name in both),
            *(plugin for plugin in spread if plugin.name not in both),
            *(plugin for plugin in here.enabled if plugin.name not in both),
        )
    )


_SCORING = ("score", "placementScore")


def _set_weight(plugin: EnabledPlugin, point: str) -> EnabledPlugin:
    # A weight of 0 would be a plugin that runs for nothing; disable it instead.
    return replace(plugin, weight=(plugin.weight or 1) if point in _SCORING else 0)


_DEFAULT = (
    EnabledPlugin("SchedulingGates"),
    EnabledPlugin("PrioritySort"),
    EnabledPlugin("NodeUnschedulable"),
    EnabledPlugin("NodeName"),
    EnabledPlugin("TaintToleration", 3),
    EnabledPlugin("NodeAffinity", 2),
    EnabledPlugin("NodePorts"),
    # After what evicting cannot change. Before what it can: the reason why an exclusive pod waits
    # is told even where it would not have room either.
    EnabledPlugin("CoexistPolicy"),
    EnabledPlugin("NodeResourcesFit", 1),
    EnabledPlugin("VolumeRestrictions"),
    EnabledPlugin("NodeVolumeLimits"),
    EnabledPlugin("VolumeBinding"),
    EnabledPlugin("VolumeZone"),
    EnabledPlugin("PodTopologySpread", 2),
    EnabledPlugin("InterPodAffinity", 2),
    # Before DefaultPreemption: to free an idle claim is better than to evict a pod.
    EnabledPlugin("DynamicResources", 2),
    EnabledPlugin("DefaultPreemption"),
    EnabledPlugin("NodeResourcesBalancedAllocation", 1),
    EnabledPlugin("ImageLocality", 1),
    EnabledPlugin("DefaultBinder"),
    EnabledPlugin("NodeDeclaredFeatures"),
    EnabledPlugin("GangScheduling"),
    EnabledPlugin("TopologyPlacementGenerator"),
    EnabledPlugin("PodGroupPodsCount", 1),
)

#: Plugins whose work the engine does. A file may name them, and they do not run.
GROUP_PLUGINS = frozenset({"GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"})

#: Plugins that are there only while a feature gate is on, and which.
GATED: Mapping[str, str] = {
    "CoexistPolicy": "CoexistPolicy",
    "NodeDeclaredFeatures": "NodeDeclaredFeatures",
    "GangScheduling": "GenericWorkload",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
}

_OWN = {"CoexistPolicy"}

#: The names that kube-scheduler itself knows, known to Moorage or not.
IN_TREE = frozenset({plugin.name for plugin in _DEFAULT} - _OWN) | {"DeferredPodScheduling"}

#: Plugins that kube-scheduler had once; NodeVolumeLimits does their work.
REMOVED = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})


def default_plugins(gates: FeatureGates) -> PluginSet:
    """Returns the default plugins, for every point that they extend."""
    off = {name for name, gate in GATED.items() if not gates.enabled(gate)}
    enabled = [each for each in _DEFAULT if each.name not in off]
    if gates.version.narrows_to_named_node:
        # Before NodeUnschedulable, so that it is asked first.
        named = EnabledPlugin("NodeName")
        enabled.remove(named)
        enabled.insert(enabled.index(EnabledPlugin("NodeUnschedulable")), named)
    return PluginSet(tuple(enabled))
