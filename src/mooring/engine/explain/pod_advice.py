"""Advice about the pods that are there already: ports, affinity, exclusive pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from mooring.cluster import Mask, PodMatch
from mooring.cluster.standing_terms import TermKind
from mooring.objects.affinity import Term
from mooring.objects.coexist import ANY, conflict, is_exclusive, unknown_policy
from mooring.objects.pod import Pod, ports_conflict
from mooring.plugins.pod_presence import match_of, presence_of

from .case import Case, RowNumbers, pod_at
from .edits import AnyEdit, DropHostPort, DropPodTerm, EvictPods, PodAt, SetCoexistPolicy
from .proposals import MOST_BLOCKERS, MOST_GROUPS, Proposal, failing_sets, on_nodes

# Nobody evicts more pods than that to place one, and each costs a look at its node.
_MOST_EVICTED = 50


def advise_on_ports(case: Case, rows: RowNumbers) -> Iterator[Proposal]:
    """Host ports that are taken, and by whom."""
    flags: dict[DropHostPort, Mask] = {}
    for address, protocol, port in case.pod.spec.host_ports:
        taken = case.nodes.port_conflicts([(address, protocol, port)], rows)
        flags[DropHostPort(address, protocol, port)] = taken
    for edits, there in failing_sets(flags, rows):
        named = ", ".join(edit.told.removeprefix("it did not take ") for edit in edits)
        blockers = _pods_on(case, there, partial(_holds, edits), MOST_BLOCKERS)
        yield Proposal("ports", f"{named} taken on {on_nodes(there, case)}", edits, blockers)


def _holds(edits: tuple[DropHostPort, ...], pod: Pod) -> bool:
    wanted = [(edit.address, edit.protocol, edit.port) for edit in edits]
    return any(ports_conflict(one, has) for one in wanted for has in pod.spec.host_ports)


def advise_on_coexistence(case: Case, rows: RowNumbers) -> Iterator[Proposal]:
    """Exclusive pods: those that are there, or the pod itself."""
    pod = case.pod
    wrong = unknown_policy(pod)
    if wrong is not None:
        yield Proposal("coexist", f"the pod {wrong}", (SetCoexistPolicy(ANY),))
        return
    repelled = rows[case.nodes.exclusive_pods[rows] > 0]
    if len(repelled):
        told = f"an exclusive pod runs on {on_nodes(repelled, case)}"
        there = _pods_on(case, repelled, lambda other: bool(conflict(pod, other)), _MOST_EVICTED)
        edits = (EvictPods(there),) if there else ()
        yield Proposal("coexist", told, edits, there[:MOST_BLOCKERS])
    if is_exclusive(pod):
        there = _pods_on(case, rows, lambda other: bool(conflict(pod, other)), MOST_BLOCKERS)
        told = f"the pod is exclusive and others run on {on_nodes(rows, case)}"
        yield Proposal("coexist", told, (SetCoexistPolicy(ANY),), there)


def advise_on_affinity(case: Case, rows: RowNumbers) -> Iterator[Proposal]:
    """Pods that are missing nearby, pods that are too near, and pods that want to be alone."""
    yield from _missing(case)
    yield from _unwanted(case, rows)
    yield from _repelling(case, rows)


def _missing(case: Case) -> Iterator[Proposal]:
    terms = case.pod.terms.affinity
    drops = [DropPodTerm("podAffinity", at, term.topology_key) for at, term in enumerate(terms)]
    for drop in drops:
        told = f"no pod near that affinity term {drop.term} ({drop.topology_key}) wants"
        yield Proposal("pod-affinity", told, (drop,))
    if len(drops) > 1:
        # From the last on, so that the numbers of the others stay right.
        yield Proposal("pod-affinity", "no pods near that affinity wants", tuple(reversed(drops)))


def _unwanted(case: Case, rows: RowNumbers) -> Iterator[Proposal]:
    nodes = case.actual
    flags: dict[AnyEdit, Mask] = {}
    matches: dict[AnyEdit, tuple[PodMatch, Term]] = {}
    for at, term in reversed(tuple(enumerate(case.pod.terms.anti_affinity))):
        match = match_of((term,), nodes.workloads)
        if match is not None:
            edit = DropPodTerm("podAntiAffinity", at, term.topology_key)
            flags[edit] = presence_of(match, term.topology_key, nodes).anywhere(rows)
            matches[edit] = match, term
    for edits, there in failing_sets(flags, rows):
        keys = ", ".join(dict.fromkeys(matches[edit][1].topology_key for edit in edits))
        told = f"pods that anti-affinity keeps away from are near {on_nodes(there, case)} ({keys})"
        blockers = [each for edit in edits for each in _matching(case, there, *matches[edit])]
        some = tuple(dict.fromkeys(blockers))[:MOST_BLOCKERS]
        yield Proposal("pod-anti-affinity", told, edits, some)


def _matching(case: Case, rows: RowNumbers, match: PodMatch, term: Term) -> tuple[PodAt, ...]:
    """Some pods that match, in the domains of some rows."""
    nodes = case.actual
    near = _same_domain(case, rows, term.topology_key)
    near = near[nodes.tally(match).by_row[near] > 0]
    return _pods_on(case, near, match.matches, MOST_BLOCKERS)


def _repelling(case: Case, rows: RowNumbers) -> Iterator[Proposal]:
    for standing in case.actual.standing(TermKind.ANTI_AFFINITY, case.pod):
        term = standing.term
        column = case.actual.label(term.topology_key)
        codes = column.codes[rows]
        repelled = np.append(standing.domains.counts()[:-1] > 0, False)[codes]
        found, counts = np.unique(codes[repelled], return_counts=True)
        for code in found[np.argsort(-counts, kind="stable")][:MOST_GROUPS].tolist():
            there = rows[repelled & (codes == code)]
            near = _same_domain(case, there, term.topology_key)
            pods = _pods_on(case, near, partial(_carries, term), _MOST_EVICTED)
            told = f"the anti-affinity of pods near {on_nodes(there, case)} ({term.topology_key})"
            edits = (EvictPods(pods),) if pods else ()
            yield Proposal("pod-anti-affinity", f"{told} repels it", edits, pods[:MOST_BLOCKERS])


def _carries(term: Term, pod: Pod) -> bool:
    return term in pod.terms.anti_affinity


def _same_domain(case: Case, rows: RowNumbers, key: str) -> RowNumbers:
    codes = case.actual.label(key).codes
    return case.alive[np.isin(codes[case.alive], np.unique(codes[rows]))]


def _pods_on(
    case: Case, rows: RowNumbers, wanted: Callable[[Pod], bool], most: int
) -> tuple[PodAt, ...]:
    """The pods on some rows that are wanted, up to a number."""
    found: list[PodAt] = []
    away = {pod.uid for pod, _ in case.gone}
    for row in rows.tolist():
        name = case.actual.name(row)
        for pod in case.actual.pods(row).values():
            if pod.uid not in away and wanted(pod):
                found.append(pod_at(pod, name))
                if len(found) == most:
                    return tuple(found)
    return tuple(found)
