"""Domains of a topology key: those for a group, and the best of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes
from moorage.framework.gang_points import find_room_counter
from moorage.framework.plugin import MAX_SCORE
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup

from .domain_use import measure_fullness
from .group_result import Domain, GroupResult, GroupStatus, error, unschedulable
from .key_domains import split_by

Numbers = NDArray[np.int64]

NO_PLACEMENTS = "no feasible placements found"

# What kube-scheduler calls the score of a domain by the number of members that it takes.
_MEMBERS = "PodGroupPodsCount"

# The only domain of groups without a key.
_ANYWHERE = (Domain(""),)

_UNKNOWN_DOMAIN = "cannot determine domain for already scheduled pods: "


def find_domains(group: PodGroup, nodes: Nodes) -> Sequence[Domain] | GroupStatus:
    """Returns the domains in which a group may be placed, by name; or why there are none."""
    key = group.topology_key
    if not key:
        return _ANYWHERE
    domains: Sequence[Domain] = split_by(key, nodes).domains
    placed = nodes.groups.placed(group.group_key)
    if placed:
        own = _find_own_domain(key, placed.values(), nodes)
        if isinstance(own, GroupStatus):
            return own
        domains = [domain for domain in domains if domain.name == own]
    return domains or unschedulable(NO_PLACEMENTS, headline="")


def _find_own_domain(key: str, placed: Iterable[Pod], nodes: Nodes) -> str | GroupStatus:
    """Returns the domain of the members that have a node; an error if they are in several."""
    own = ""
    for pod in placed:
        row = nodes.row(pod.node_name)
        if row is None:
            missing = f'nodeinfo not found for node name "{pod.node_name}"'
            return error(f"{_UNKNOWN_DOMAIN}getting node for pod {pod.key}: {missing}")
        domain = nodes.node(row).labels.get(key)
        if domain is None:
            return error(f"{_UNKNOWN_DOMAIN}no topology domain found for pod {pod.key}")
        if own and own != domain:
            names = f"{own}, {domain}"
            return error(f"{_UNKNOWN_DOMAIN}more than 1 domain found for pod group: {names}")
        own = domain
    return own


def score_domains(results: Sequence[GroupResult], nodes: Nodes, profile: Profile) -> None:
    """Scores domains that take a group: the fuller, and the more members, the better."""
    counter = find_room_counter(profile)
    resources = scored_resources(profile)
    domains = [each.domain for each in results if each.domain is not None]
    counts = np.array([len(each.placed) for each in results], np.int64)
    added = [
        [
            sum(each.pod.spec.scoring_requests.get(name, 0) for each in result.placed)
            for result in results
        ]
        for name in resources
    ]
    amounts = np.array(added, np.int64).reshape(len(added), len(domains))
    fullness = measure_fullness(domains, amounts, resources, nodes)
    of_fullness, of_members = _find_weights(profile)
    for result, full, share in zip(results, fullness, share_members(counts), strict=True):
        scores = {} if counter is None else {counter.name: of_fullness * int(full)}
        result.scores = {**scores, _MEMBERS: of_members * int(share)}


def _find_weights(profile: Profile) -> tuple[int, int]:
    """Returns the weights of how full a domain is, and of its share of members."""
    weights, counter = profile.placement_weights, find_room_counter(profile)
    if weights is None:
        return 1, 1
    return 0 if counter is None else weights.get(counter.name, 0), weights.get(_MEMBERS, 0)


def scored_resources(profile: Profile) -> Mapping[str, int]:
    """Returns the resources by which domains are scored, with their weights."""
    plugin = find_room_counter(profile)
    return {} if plugin is None else plugin.scored_resources


class BestDomain(NamedTuple):
    """The best domain for a gang, by its position among all domains of its label."""

    place: int
    #: How many members it takes.
    members: int
    #: How many domains take enough members.
    feasible: int


def choose_domain(
    pod: Pod,
    group: PodGroup,
    profile: Profile,
    counts: Numbers,
    domains: Sequence[Domain],
    nodes: Nodes,
) -> BestDomain:
    """Returns the best of the domains that take enough members, given how many each takes.

    The members are identical, and none has a node, or its domain would be the only choice.
    """
    enough = np.flatnonzero((counts > 0) & (counts >= group.min_count))
    if not len(enough):
        return BestDomain(0, 0, 0)
    resources = scored_resources(profile)
    amounts = [[pod.spec.scoring_requests.get(name, 0)] for name in resources]
    added = counts * np.array(amounts, np.int64).reshape(len(amounts), 1)
    fullness = measure_fullness(domains, added, resources, nodes, group.topology_key)[enough]
    of_fullness, of_members = _find_weights(profile)
    scores = of_fullness * fullness + of_members * share_members(counts[enough])
    # The first of the best, by name.
    best = int(enough[int(scores.argmax())])
    return BestDomain(best, counts.item(best), len(enough))


def share_members(counts: Numbers) -> Numbers:
    """Returns the members of each domain, as a share from 0 to 100 of the largest number."""
    most = max(1, int(counts.max(initial=0)))
    return counts * MAX_SCORE // most
