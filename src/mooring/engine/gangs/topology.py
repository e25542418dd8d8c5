"""Domains of a topology key: which there are for a group, and which of them is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Nodes
from mooring.cluster.labels import ABSENT
from mooring.framework.plugin import MAX_SCORE
from mooring.framework.profile import Profile
from mooring.objects.pod import Pod
from mooring.objects.pod_group import PodGroup
from mooring.objects.resources import CPU, MEMORY
from mooring.plugins.node_resources_fit import NodeResourcesFit

from .group_result import Domain, GroupResult, GroupStatus, error, unschedulable

NO_PLACEMENTS = "no feasible placements found"

# In the order of `Nodes.nonzero_requested`.
_NEVER_ZERO = (CPU, MEMORY)

# Sums beyond this are worked with as Python's integers.
_MOST_EXACT = 2**55

_UNKNOWN_DOMAIN = "cannot determine domain for already scheduled pods: "


@dataclass(frozen=True, slots=True)
class KeyDomains:
    """All domains of a label by name, and their rows one after the other."""

    domains: tuple[Domain, ...]
    rows: NDArray[np.intp]
    #: Where the rows of each domain begin.
    begins: NDArray[np.intp]

    def sum(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum of what the rows of each domain have."""
        sums: NDArray[np.int64] = np.add.reduceat(values[self.rows], self.begins)
        return sums


def find_domains(group: PodGroup, nodes: Nodes) -> Sequence[Domain] | GroupStatus:
    """The domains in which a group may be placed, by name; or why there are none."""
    key = group.domain_key
    if not key:
        return [Domain("")]
    known = split_by(key, nodes)
    taken = _find_taken(group, nodes)
    if isinstance(taken, GroupStatus):
        return taken
    domains: Sequence[Domain] = known.domains
    if taken:
        domains = [domain for domain in domains if domain.name in taken]
    return domains or unschedulable(NO_PLACEMENTS, headline="")


def split_by(key: str, nodes: Nodes) -> KeyDomains:
    """The domains of a label, kept until a node comes or goes or gets other labels."""
    return nodes.derived.get(("domains", key), lambda: _split(key, nodes))


def sum_domains(
    values: NDArray[np.int64], domains: Sequence[Domain], nodes: Nodes, key: str = ""
) -> NDArray[np.int64]:
    """The sum of what the rows of each domain have."""
    if key:
        known = split_by(key, nodes)
        if known.domains is domains:
            return known.sum(values)
    sums = (values.sum() if each.rows is None else values[each.rows].sum() for each in domains)
    return np.fromiter(sums, np.int64, len(domains))


def _split(key: str, nodes: Nodes) -> KeyDomains:
    column = nodes.label(key)
    rows = nodes.rows
    codes = column.codes[rows]
    rows, codes = rows[codes != ABSENT], codes[codes != ABSENT]
    found = np.unique(codes)
    values = column.vocabulary.values
    by_name = sorted(found.tolist(), key=lambda code: values[code])
    places = np.zeros(int(found.max(initial=-1)) + 1, np.intp)
    places[by_name] = np.arange(len(by_name))
    order = np.argsort(places[codes], kind="stable")
    rows = rows[order]
    begins = np.searchsorted(places[codes[order]], np.arange(len(by_name)))
    parts = np.split(rows, begins[1:]) if len(by_name) else []
    domains = tuple(Domain(values[code], part) for code, part in zip(by_name, parts, strict=True))
    return KeyDomains(domains, rows, begins)


def _find_taken(group: PodGroup, nodes: Nodes) -> list[str] | GroupStatus:
    """The domain of the members that have a node; none if there are no such members."""
    found: dict[str, None] = {}
    for pod in nodes.groups.placed(group.group_key).values():
        row = nodes.row(pod.node_name)
        if row is None:
            return error(f"{_UNKNOWN_DOMAIN}getting node for pod {pod.key}")
        value = nodes.node(row).labels.get(group.domain_key)
        if value is None:
            return error(f"{_UNKNOWN_DOMAIN}no topology domain found for pod {pod.key}")
        found[value] = None
    if len(found) > 1:
        names = ", ".join(sorted(found))
        return error(f"{_UNKNOWN_DOMAIN}more than 1 domain found for pod group: {names}")
    return list(found)


def score_domains(
    results: Sequence[GroupResult], nodes: Nodes, profile: Profile, scheduled: int
) -> None:
    """Weighs domains that take a group: the fuller, and the more members, the better."""
    resources = _scored_resources(profile)
    domains = [each.domain for each in results if each.domain is not None]
    counts = np.array([scheduled + len(each.placed) for each in results], np.int64)
    added = {
        name: np.array(
            [
                sum(each.pod.spec.scoring_requests.get(name, 0) for each in result.placed)
                for result in results
            ],
            np.int64,
        )
        for name in resources
    }
    fullness = _fullness(domains, added, resources, nodes)
    for result, full, share in zip(results, fullness, _shares(counts), strict=True):
        result.scores = _name_scores(full, share)


def choose_counted(
    counted: tuple[NDArray[np.intp], NDArray[np.int64]],
    domains: Sequence[Domain],
    pod: Pod,
    group: PodGroup,
    profile: Profile,
    nodes: Nodes,
) -> tuple[int, dict[str, int]]:
    """The best of some domains of which it is only counted how many pods like one they take.

    Counted are their places and the numbers of pods.
    """
    places, counts = counted
    scheduled = len(nodes.groups.placed(group.group_key))
    resources, asked = _scored_resources(profile), pod.spec.scoring_requests
    added = {name: np.zeros(len(domains), np.int64) for name in resources}
    for name in resources:
        added[name][places] = counts * asked.get(name, 0)
    fullness = _fullness(domains, added, resources, nodes, group.domain_key)[places]
    shares = _shares(scheduled + counts)
    # The first of the best, by name.
    best = int((fullness + shares).argmax())
    return int(places[best]), _name_scores(fullness[best], shares[best])


def _name_scores(fullness: int, share: int) -> dict[str, int]:
    return {"NodeResourcesFit": int(fullness), "PodGroupPodsCount": int(share)}


def _shares(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many members each domain has, of the most that any has, from 0 to 100."""
    most = max(1, int(counts.max(initial=0)))
    return counts * MAX_SCORE // most


def _fullness(
    domains: Sequence[Domain],
    added: Mapping[str, NDArray[np.int64]],
    resources: Mapping[str, int],
    nodes: Nodes,
    key: str = "",
) -> NDArray[np.int64]:
    """How full each domain would be with what is added, from 0 to 100."""
    totals, weights = (np.zeros(len(domains), np.int64) for _ in range(2))
    for name, weight in resources.items():
        place = nodes.resource(name)
        if place is None:
            continue
        whole = sum_domains(nodes.allocatable[place], domains, nodes, key)
        used = sum_domains(_find_requested(name, place, nodes), domains, nodes, key) + added[name]
        if whole.max(initial=0) > _MOST_EXACT:
            # A hundredfold of it is more than 64 bits hold.
            whole, used = whole.astype(object), used.astype(object)
        there = whole > 0
        share = np.minimum(used, whole)[there] * MAX_SCORE // whole[there]
        totals[there] += weight * share.astype(np.int64)
        weights[there] += weight
    return totals // np.maximum(weights, 1)


def _find_requested(name: str, place: int, nodes: Nodes) -> NDArray[np.int64]:
    """What is requested per row; pods that name no cpu or memory count with a little of it."""
    if name in _NEVER_ZERO:
        return nodes.nonzero_requested[_NEVER_ZERO.index(name)]
    return nodes.requested[place]


def _scored_resources(profile: Profile) -> Mapping[str, int]:
    plugin = profile.plugins.get(NodeResourcesFit.name)
    return plugin.scored_resources if isinstance(plugin, NodeResourcesFit) else {}
