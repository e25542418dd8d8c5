"""Which nodes a gang that has waited for long is kept: where it lacks least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Nodes
from mooring.cluster.kept_room import KeptRoom
from mooring.framework.gang_points import CountRoom
from mooring.framework.points import filter_rows, pre_filter
from mooring.framework.profile import Profile
from mooring.framework.status import PluginError
from mooring.objects.pod import Pod
from mooring.objects.resources import PODS

from . import topology
from .group_checks import preemption_policy
from .group_decision import GroupDecision
from .group_result import Domain, GroupStatus

Counts = NDArray[np.int64]


def choose_room(decision: GroupDecision, known: KeptRoom | None) -> KeptRoom | None:
    """The nodes to keep for a refused gang; None if it would fit nowhere, however empty.

    Known is what is kept for it already: it stays where it has begun to collect room.
    """
    group, nodes = decision.group, decision.trial.cluster.nodes
    running = len(nodes.groups.placed(group.group_key))
    domains = topology.find_domains(group, nodes)
    if isinstance(domains, GroupStatus):
        return None
    pod = _most_demanding(decision.members, nodes)
    try:
        free, whole = _count(pod, decision.trial.profile, nodes)
    except PluginError:
        return None
    rows = _choose_rows(domains, (free, whole), group.min_count - running, known, nodes)
    if rows is None:
        return None
    return KeptRoom(
        group.group_key,
        group.priority_beside(pod),
        preemption_policy(pod) != "Never",
        tuple(nodes.names(rows.tolist())),
    )


def _most_demanding(members: Sequence[Pod], nodes: Nodes) -> Pod:
    """The member that needs the largest share of what any node has."""
    kinds = {id(pod.spec): pod for pod in members}
    return max(kinds.values(), key=lambda pod: topology.largest_share(pod, nodes))


def _count(pod: Pod, profile: Profile, nodes: Nodes) -> tuple[Counts, Counts]:
    """Per row how many such pods it takes now, and how many if it were empty."""
    everything = nodes.everything
    count = nodes.count(everything)
    free, whole = (np.full(count, np.iinfo(np.int32).max, np.int64) for _ in range(2))
    for name, amount in ((PODS, 1), *pod.requests):
        place = nodes.resource(name)
        if amount <= 0:
            continue
        if place is None:
            return np.zeros(count, np.int64), np.zeros(count, np.int64)
        allocatable = nodes.allocatable[place, everything]
        np.minimum(whole, allocatable // amount, out=whole)
        left = np.maximum(allocatable - nodes.requested[place, everything], 0)
        np.minimum(free, left // amount, out=free)
    usable = _find_usable(pod, profile, nodes)
    return np.where(usable, free, 0), np.where(usable, whole, 0)


def _find_usable(pod: Pod, profile: Profile, nodes: Nodes) -> NDArray[np.bool_]:
    """The rows that nobody but a lack of room rejects."""
    prepared = pre_filter(profile, pod, nodes)
    usable = nodes.alive[nodes.everything].copy()
    if prepared.rejected is not None:
        usable[:] = False
        return usable
    if prepared.node_names is not None:
        usable[:] = False
        rows = nodes.find_rows(sorted(prepared.node_names))
        usable[rows[rows >= 0]] = True
    filtered = filter_rows(profile, pod, prepared, nodes, nodes.everything)
    for layer in filtered.layers:
        if not isinstance(profile.plugins[layer.plugin], CountRoom):
            usable[filtered.rows[layer.decided]] = False
    return usable


def _choose_rows(
    domains: Sequence[Domain],
    counts: tuple[Counts, Counts],
    needed: int,
    known: KeptRoom | None,
    nodes: Nodes,
) -> NDArray[np.intp] | None:
    """The rows of the domain that lacks least, no more of them than the gang needs."""
    free, whole = counts
    before = nodes.find_rows(known.nodes if known is not None else ())
    best: tuple[tuple[int, int], NDArray[np.intp]] | None = None
    for domain in domains:
        rows = nodes.rows if domain.rows is None else domain.rows
        rows = rows[whole[rows] > 0]
        if int(whole[rows].sum()) < needed:
            continue
        is_known = np.isin(rows, before)
        order = rows[np.lexsort((rows, -whole[rows], -free[rows], ~is_known))]
        enough = int(np.searchsorted(np.cumsum(whole[order]), needed)) + 1
        quality = int(is_known.any()), min(needed, int(free[order[:enough]].sum()))
        if best is None or quality > best[0]:
            best = quality, order[:enough]
    return None if best is None else best[1]
