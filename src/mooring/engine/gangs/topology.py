"""Domains of a topology key: which there are for a group, and which of them is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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

_UNKNOWN_DOMAIN = "cannot determine domain for already scheduled pods: "


def find_domains(group: PodGroup, nodes: Nodes) -> list[Domain] | GroupStatus:
    """The domains in which a group may be placed, by name; or why there are none."""
    key = group.domain_key
    if not key:
        return [Domain("")]
    by_name = _split(key, nodes)
    taken = _find_taken(group, nodes)
    if isinstance(taken, GroupStatus):
        return taken
    names = sorted(by_name) if not taken else [name for name in taken if name in by_name]
    if not names:
        return unschedulable(NO_PLACEMENTS, headline="")
    return [Domain(name, by_name[name]) for name in names]


def _split(key: str, nodes: Nodes) -> dict[str, NDArray[np.intp]]:
    """The rows of each value of a label."""
    column = nodes.label(key)
    rows = nodes.rows
    codes = column.codes[rows]
    rows, codes = rows[codes != ABSENT], codes[codes != ABSENT]
    order = np.argsort(codes, kind="stable")
    rows, codes = rows[order], codes[order]
    found, begins = np.unique(codes, return_index=True)
    parts = np.split(rows, begins[1:]) if len(found) else []
    return {
        column.vocabulary.values[code]: part
        for code, part in zip(found.tolist(), parts, strict=True)
    }


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
    most = max(scheduled + len(each.placed) for each in results)
    resources = _scored_resources(profile)
    for result in results:
        assert result.domain is not None, "a domain was tried"
        added = {
            name: sum(each.pod.spec.scoring_requests.get(name, 0) for each in result.placed)
            for name in resources
        }
        count = scheduled + len(result.placed)
        result.scores = _score(result.domain, added, (count, most), nodes, resources)


def score_counts(
    counted: Sequence[tuple[Domain, int]],
    pod: Pod,
    nodes: Nodes,
    profile: Profile,
    scheduled: int,
) -> list[dict[str, int]]:
    """The same for domains of which it is only counted how many pods like one they take."""
    most = max(scheduled + count for _, count in counted)
    resources, asked = _scored_resources(profile), pod.spec.scoring_requests
    return [
        _score(
            domain,
            {name: count * asked.get(name, 0) for name in resources},
            (scheduled + count, most),
            nodes,
            resources,
        )
        for domain, count in counted
    ]


def _score(
    domain: Domain,
    added: Mapping[str, int],
    counts: tuple[int, int],
    nodes: Nodes,
    resources: Mapping[str, int],
) -> dict[str, int]:
    """The scores of a domain: how full it would be, and its share of the most members."""
    count, most = counts
    rows = nodes.rows if domain.rows is None else domain.rows
    return {
        "NodeResourcesFit": _fullness(added, rows, nodes, resources),
        "PodGroupPodsCount": count * MAX_SCORE // most if most else 0,
    }


def _fullness(
    added: Mapping[str, int],
    rows: NDArray[np.intp],
    nodes: Nodes,
    resources: Mapping[str, int],
) -> int:
    """How full a domain would be with what is added, from 0 to 100."""
    total = weights = 0
    for name, weight in resources.items():
        place = nodes.resource(name)
        if place is None:
            continue
        whole = int(nodes.allocatable[place, rows].sum())
        if not whole:
            continue
        used = int(_requested(name, place, nodes)[rows].sum()) + added[name]
        total += weight * (min(used, whole) * MAX_SCORE // whole)
        weights += weight
    return total // weights if weights else 0


def _requested(name: str, place: int, nodes: Nodes) -> NDArray[np.int64]:
    """What is requested per row; pods that name no cpu or memory count with a little of it."""
    if name in _NEVER_ZERO:
        return nodes.nonzero_requested[_NEVER_ZERO.index(name)]
    return nodes.requested[place]


def _scored_resources(profile: Profile) -> Mapping[str, int]:
    plugin = profile.plugins.get(NodeResourcesFit.name)
    return plugin.scored_resources if isinstance(plugin, NodeResourcesFit) else {}
