"""How many like members each domain takes, counted in one pass instead of tried one by one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import reduce
from operator import or_

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Nodes
from mooring.framework.nominated import sees_only_counts
from mooring.framework.plugin import TEMPLATE, Sign, SignedParts
from mooring.framework.points import filter_rows, pre_filter
from mooring.framework.profile import Profile
from mooring.objects.coexist import is_exclusive
from mooring.objects.pod import Pod
from mooring.objects.resources import PODS
from mooring.plugins.gang_protection import GangProtection
from mooring.plugins.node_resources_fit import NodeResourcesFit

from .group_result import Domain

# What these reserve, pods that are counted here do not ask for.
_HARMLESS = frozenset({"VolumeBinding", "DynamicResources"})

# What these read of a pod, all members of a group have in common.
_SHARED = _HARMLESS | {GangProtection.name}


def count_members(
    members: Sequence[Pod], domains: Sequence[Domain], profile: Profile, nodes: Nodes
) -> list[int] | None:
    """How many of the members find a place in each domain; None if only trying can tell."""
    pod = members[0]
    if not are_alike(members, profile, nodes) or not is_countable(pod, profile, nodes):
        return None
    fits = count_fits(pod, profile, nodes)
    if fits is None:
        return None
    most = len(members)
    totals = (int(fits.sum() if each.rows is None else fits[each.rows].sum()) for each in domains)
    return [min(most, total) for total in totals]


def are_alike(members: Sequence[Pod], profile: Profile, nodes: Nodes) -> bool:
    """Whether any node answers all members alike."""
    return len(group_alike(members, profile, nodes)) == 1


def group_alike(members: Sequence[Pod], profile: Profile, nodes: Nodes) -> list[list[Pod]]:
    """The members by what nodes answer them, though labels that nobody reads tell them apart."""
    parts = _signed_parts(profile)
    if parts is None:
        return [[pod] for pod in members]
    keys = sorted(parts.annotations)
    groups: dict[Hashable, list[Pod]] = {}
    for pod in members:
        held = pod.annotations
        labels = tuple(pod.labels.items()) if parts.any_label else nodes.labels_that_matter(pod)
        texts = tuple(held.get(key) for key in keys) if held else ()
        groups.setdefault((id(pod.spec), pod.priority, labels, texts), []).append(pod)
    return list(groups.values())


def _signed_parts(profile: Profile) -> SignedParts | None:
    """What filters read of a pod besides its template; None if one of them does not say."""
    signing = [plugin for plugin in profile.filter if plugin.name not in _SHARED]
    known = [plugin.signs if isinstance(plugin, Sign) else None for plugin in signing]
    parts = [each for each in known if each is not None]
    return reduce(or_, parts, TEMPLATE) if len(parts) == len(known) else None


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
