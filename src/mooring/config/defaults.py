"""The plugins of the default profile: kube-scheduler's, and those of Mooring that are opt-in."""

from __future__ import annotations

from .gates import FeatureGates
from .merge import EnabledPlugin, PluginSet

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
)

#: Plugins that are there only while the feature gate of the same name is on.
GATED = frozenset({"CoexistPolicy", "NodeDeclaredFeatures"})

_OWN = {"CoexistPolicy"}

#: The names that kube-scheduler itself knows, known to Mooring or not.
IN_TREE = frozenset({plugin.name for plugin in _DEFAULT} - _OWN) | {
    "GangScheduling",
    "TopologyPlacementGenerator",
    "PodGroupPodsCount",
}

#: Plugins that kube-scheduler had once; NodeVolumeLimits does their work.
REMOVED = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})


def default_plugins(gates: FeatureGates) -> PluginSet:
    """The default plugins, for every point that they extend."""
    off = {name for name in GATED if not gates.enabled(name)}
    return PluginSet(tuple(each for each in _DEFAULT if each.name not in off))
