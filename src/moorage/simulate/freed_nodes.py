"""Finds the pods whose eviction would free nodes for a pod that shares them with few or none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from moorage.cluster import Nodes, WhatIf
from moorage.engine.explain.explanation import ExplanationPart, Names
from moorage.framework.attempt import PreFiltered
from moorage.framework.kubelet_admission import AdmitPods
from moorage.framework.nominated import filter_with_nominated, without_pod
from moorage.framework.plugin_fence import PluginFence
from moorage.framework.points import pre_filter
from moorage.framework.profile import Profile
from moorage.framework.status import PluginError
from moorage.objects.pod import Pod

# Nobody drains a node of more pods to place one, and each node costs a look of its own.
_MOST_PODS = 50
_MOST_NODES = 500


class FreedNode(ExplanationPart, frozen=True):
    """A node that takes the pod once these pods are gone."""

    node: str
    pods: Names


def find_freed_nodes(profile: Profile, pod: Pod, nodes: Nodes, count: int) -> tuple[FreedNode, ...]:
    """Returns up to `count` nodes for a pod, those with the fewest victims first.

    A node counts if it takes the pod without those that a policy says are in its way. Priorities
    and disruption budgets are ignored: a person decides what to evict.
    """
    try:
        prepared = pre_filter(profile, pod, nodes)
        if prepared.rejected is not None:
            return ()
        return tuple(_find_freed(profile, pod, prepared, nodes, count))
    except PluginError:
        return ()


def _find_freed(
    profile: Profile, pod: Pod, prepared: PreFiltered, nodes: Nodes, count: int
) -> Iterator[FreedNode]:
    by_crowd = sorted(nodes.rows.tolist(), key=lambda row: len(nodes.pods(row)))
    found = ((row, _find_in_the_way(profile, pod, nodes, row)) for row in by_crowd[:_MOST_NODES])
    victims = [(row, pods) for row, pods in found if 0 < len(pods) <= _MOST_PODS]
    for row, pods in sorted(victims, key=lambda each: len(each[1])):
        if count <= 0:
            return
        if _takes(profile, pod, prepared, nodes, row, pods):
            count -= 1
            yield FreedNode(nodes.name(row), tuple(sorted(each.key for each in pods)))


def _find_in_the_way(profile: Profile, pod: Pod, nodes: Nodes, row: int) -> list[Pod]:
    """Returns the pods on a row that policies say must leave."""
    there = nodes.pods(row)
    found: dict[str, Pod] = {}
    for plugin in profile.plugins.values():
        if isinstance(plugin, AdmitPods):
            with PluginFence('asking plugin "{}" who is in the way', plugin):
                found.update((each.uid, each) for each in plugin.in_the_way(pod, there.values()))
    return list(found.values())


def _takes(
    profile: Profile,
    pod: Pod,
    prepared: PreFiltered,
    nodes: Nodes,
    row: int,
    leaving: list[Pod],
) -> bool:
    """Whether a row takes a pod once others have left it."""
    if prepared.node_names is not None and nodes.name(row) not in prepared.node_names:
        return False
    what_if, adjusted = WhatIf(nodes), prepared.prepared
    for other in leaving:
        what_if.remove_pod(other, row)
        adjusted = without_pod(profile, adjusted, what_if, other, row)
    after = replace(prepared, prepared=adjusted)
    return bool(filter_with_nominated(profile, pod, after, what_if, np.array([row])).feasible[0])
