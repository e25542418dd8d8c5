"""How many like members each domain takes, counted in one pass instead of tried one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Nodes
from mooring.framework.nominated import sees_only_counts
from mooring.framework.points import filter_rows, pre_filter
from mooring.framework.profile import Profile
from mooring.objects.coexist import is_exclusive
from mooring.objects.pod import Pod
from mooring.objects.resources import PODS
from mooring.plugins.node_resources_fit import NodeResourcesFit

from .group_result import Domain

# What these reserve, pods that are counted here do not ask for.
_HARMLESS = frozenset({"VolumeBinding", "DynamicResources"})


def count_members(
    members: Sequence[Pod], domains: Sequence[Domain], profile: Profile, nodes: Nodes
) -> list[int] | None:
    """How many of the members find a place in each domain; None if only trying can tell."""
    pod = members[0]
    if not are_alike(members) or not is_countable(pod, profile, nodes):
        return None
    fits = count_fits(pod, profile, nodes)
    if fits is None:
        return None
    most = len(members)
    totals = (int(fits.sum() if each.rows is None else fits[each.rows].sum()) for each in domains)
    return [min(most, total) for total in totals]


def are_alike(members: Sequence[Pod]) -> bool:
    """Whether any node answers all members alike."""
    first = members[0]
    return all(
        pod.spec is first.spec and pod.labels == first.labels and pod.priority == first.priority
        for pod in members
    )


def is_countable(pod: Pod, profile: Profile, nodes: Nodes) -> bool:
    """Whether a pod takes of a node only what can be counted, and nobody is nominated."""
    spec = pod.spec
    return not (
        nodes.nominations
        or spec.host_ports
        or spec.volumes
        or spec.resource_claims
        or is_exclusive(pod)
        or pod.held.requests != pod.requests
        or {each.name for each in profile.reserve} - _HARMLESS
        or profile.percentage_of_nodes_to_score
    )


def sees_counts(pod: Pod, profile: Profile, nodes: Nodes) -> bool:
    """Whether a pod takes and minds only what is counted of nodes."""
    prepared = pre_filter(profile, pod, nodes)
    return (
        prepared.rejected is None
        and is_countable(pod, profile, nodes)
        and sees_only_counts(profile, pod, prepared, nodes)
    )


def count_fits(pod: Pod, profile: Profile, nodes: Nodes) -> NDArray[np.int64] | None:
    """Per row how many such pods it takes; None if they mind more than what is counted."""
    if not any(isinstance(each, NodeResourcesFit) for each in profile.filter):
        return None
    prepared = pre_filter(profile, pod, nodes)
    if prepared.rejected is not None or prepared.node_names is not None:
        return None
    if not sees_only_counts(profile, pod, prepared, nodes):
        return None
    everything = nodes.everything
    feasible = filter_rows(profile, pod, prepared, nodes, everything).feasible
    fits = np.full(nodes.count(everything), np.iinfo(np.int32).max, np.int64)
    for name, amount in ((PODS, 1), *pod.requests):
        place = nodes.resource(name)
        if place is not None and amount > 0:
            left = nodes.allocatable[place, everything] - nodes.requested[place, everything]
            np.minimum(fits, left // amount, out=fits)
    # Where one is taken there is room for one, whatever else is left to others to count.
    return np.where(feasible, np.maximum(fits, 1), 0)
