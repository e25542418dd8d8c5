"""Advice about pods that run already: affinity and anti-affinity."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, PodMatch, View
from moorage.cluster.standing_terms import TermKind
from moorage.framework.advice import (
    MOST_BLOCKERS,
    MOST_GROUPS,
    Advice,
    find_pods,
    group_by_failures,
    name_nodes,
)
from moorage.framework.edits import DropPodTerm, Edit, EvictPods, PodAt
from moorage.objects.placement_rules import AffinityTerm
from moorage.objects.pod import Pod

from .pod_presence import TermMatcher, presence_of

RowNumbers = NDArray[np.intp]

# Nobody evicts more pods than that to place one, and each costs a look at its node.
_MOST_EVICTED = 50


def advise_on_affinity(
    pod: Pod, nodes: View, rows: RowNumbers, matcher: TermMatcher
) -> Iterator[Advice]:
    """Yields advice about pods that are missing nearby, too near, or want to be alone."""
    yield from _advise_on_affinity(pod)
    yield from _advise_on_anti_affinity(pod, nodes, rows, matcher)
    yield from _advise_on_repelling_pods(pod, nodes, rows)


def _advise_on_affinity(pod: Pod) -> Iterator[Advice]:
    terms = pod.terms.affinity
    drops = [DropPodTerm("podAffinity", at, term.topology_key) for at, term in enumerate(terms)]
    for drop in drops:
        problem = f"no pod near that affinity term {drop.term} ({drop.topology_key}) wants"
        yield Advice(problem, (drop,), kind="pod-affinity")
    if len(drops) > 1:
        # From the last on, so that the numbers of the others stay right.
        yield Advice(
            "no pods near that affinity wants", tuple(reversed(drops)), kind="pod-affinity"
        )


def _advise_on_anti_affinity(
    pod: Pod, nodes: View, rows: RowNumbers, matcher: TermMatcher
) -> Iterator[Advice]:
    flags: dict[Edit, Mask] = {}
    matches: dict[Edit, tuple[PodMatch, AffinityTerm]] = {}
    for at, term in reversed(tuple(enumerate(pod.terms.anti_affinity))):
        match = matcher.match((term,), nodes.workloads)
        if match is not None:
            edit = DropPodTerm("podAntiAffinity", at, term.topology_key)
            flags[edit] = presence_of(match, term.topology_key, nodes).anywhere(rows)
            matches[edit] = match, term
    for edits, there in group_by_failures(flags, rows):
        keys = ", ".join(dict.fromkeys(matches[edit][1].topology_key for edit in edits))
        where = f"{name_nodes(there, nodes)} ({keys})"
        problem = f"pods that anti-affinity keeps away from are near {where}"
        blockers = [
            each for edit in edits for each in _find_matching(pod, nodes, there, *matches[edit])
        ]
        some = tuple(dict.fromkeys(blockers))[:MOST_BLOCKERS]
        yield Advice(problem, edits, some, kind="pod-anti-affinity")


def _find_matching(
    pod: Pod, nodes: View, rows: RowNumbers, match: PodMatch, term: AffinityTerm
) -> tuple[PodAt, ...]:
    """Some pods that match, in the domains of some rows."""
    near = _find_domain(nodes, rows, term.topology_key)
    near = near[nodes.tally(match).by_row[near] > 0]
    return find_pods(near, nodes, lambda other: other.uid != pod.uid and match.matches(other))


def _advise_on_repelling_pods(pod: Pod, nodes: View, rows: RowNumbers) -> Iterator[Advice]:
    for standing in nodes.standing(TermKind.ANTI_AFFINITY, pod):
        term = standing.term
        column = nodes.label(term.topology_key)
        codes = column.codes[rows]
        repelled = np.append(standing.domains.counts()[:-1] > 0, False)[codes]
        found, counts = np.unique(codes[repelled], return_counts=True)
        for code in found[np.argsort(-counts, kind="stable")][:MOST_GROUPS].tolist():
            there = rows[repelled & (codes == code)]
            near = _find_domain(nodes, there, term.topology_key)
            pods = find_pods(near, nodes, partial(_carries, term, pod.uid), _MOST_EVICTED)
            where = f"{name_nodes(there, nodes)} ({term.topology_key})"
            problem = f"the anti-affinity of pods near {where}"
            edits = (EvictPods(pods),) if pods else ()
            yield Advice(
                f"{problem} repels it", edits, pods[:MOST_BLOCKERS], kind="pod-anti-affinity"
            )


def _carries(term: AffinityTerm, except_uid: str, pod: Pod) -> bool:
    return pod.uid != except_uid and term in pod.terms.anti_affinity


def _find_domain(nodes: View, rows: RowNumbers, key: str) -> RowNumbers:
    """Returns all rows in the same domains as some rows."""
    codes = nodes.label(key).codes
    return nodes.rows[np.isin(codes[nodes.rows], np.unique(codes[rows]))]
