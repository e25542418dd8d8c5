"""Advice about the pods that are there already: ports, affinity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from mooring.cluster import Mask, PodMatch
from mooring.cluster.standing_terms import TermKind
from mooring.framework.advice import (
    MOST_BLOCKERS,
    MOST_GROUPS,
    Advice,
    failing_sets,
    on_nodes,
    pods_on,
)
from mooring.framework.edits import AnyEdit, DropHostPort, DropPodTerm, EvictPods, PodAt
from mooring.objects.affinity import Term
from mooring.objects.pod import Pod, ports_conflict
from mooring.plugins.pod_presence import match_of, presence_of

from .case import Case, RowNumbers

# Nobody evicts more pods than that to place one, and each costs a look at its node.
_MOST_EVICTED = 50


def advise_on_ports(case: Case, rows: RowNumbers) -> Iterator[Advice]:
    """Host ports that are taken, and by whom."""
    flags: dict[DropHostPort, Mask] = {}
    for address, protocol, port in case.pod.spec.host_ports:
        taken = case.nodes.port_conflicts([(address, protocol, port)], rows)
        flags[DropHostPort(address, protocol, port)] = taken
    for edits, there in failing_sets(flags, rows):
        named = ", ".join(edit.told.removeprefix("it did not take ") for edit in edits)
        blockers = pods_on(there, case.actual, _other_than(case, partial(_holds, edits)))
        yield Advice(
            f"{named} taken on {on_nodes(there, case.actual)}", edits, blockers, kind="ports"
        )


def _holds(edits: tuple[DropHostPort, ...], pod: Pod) -> bool:
    wanted = [(edit.address, edit.protocol, edit.port) for edit in edits]
    return any(ports_conflict(one, has) for one in wanted for has in pod.spec.host_ports)


def advise_on_affinity(case: Case, rows: RowNumbers) -> Iterator[Advice]:
    """Pods that are missing nearby, pods that are too near, and pods that want to be alone."""
    yield from _missing(case)
    yield from _unwanted(case, rows)
    yield from _repelling(case, rows)


def _missing(case: Case) -> Iterator[Advice]:
    terms = case.pod.terms.affinity
    drops = [DropPodTerm("podAffinity", at, term.topology_key) for at, term in enumerate(terms)]
    for drop in drops:
        told = f"no pod near that affinity term {drop.term} ({drop.topology_key}) wants"
        yield Advice(told, (drop,), kind="pod-affinity")
    if len(drops) > 1:
        # From the last on, so that the numbers of the others stay right.
        yield Advice(
            "no pods near that affinity wants", tuple(reversed(drops)), kind="pod-affinity"
        )


def _unwanted(case: Case, rows: RowNumbers) -> Iterator[Advice]:
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
        where = f"{on_nodes(there, nodes)} ({keys})"
        told = f"pods that anti-affinity keeps away from are near {where}"
        blockers = [each for edit in edits for each in _matching(case, there, *matches[edit])]
        some = tuple(dict.fromkeys(blockers))[:MOST_BLOCKERS]
        yield Advice(told, edits, some, kind="pod-anti-affinity")


def _matching(case: Case, rows: RowNumbers, match: PodMatch, term: Term) -> tuple[PodAt, ...]:
    """Some pods that match, in the domains of some rows."""
    nodes = case.actual
    near = _same_domain(case, rows, term.topology_key)
    near = near[nodes.tally(match).by_row[near] > 0]
    return pods_on(near, nodes, _other_than(case, match.matches))


def _repelling(case: Case, rows: RowNumbers) -> Iterator[Advice]:
    for standing in case.actual.standing(TermKind.ANTI_AFFINITY, case.pod):
        term = standing.term
        column = case.actual.label(term.topology_key)
        codes = column.codes[rows]
        repelled = np.append(standing.domains.counts()[:-1] > 0, False)[codes]
        found, counts = np.unique(codes[repelled], return_counts=True)
        for code in found[np.argsort(-counts, kind="stable")][:MOST_GROUPS].tolist():
            there = rows[repelled & (codes == code)]
            near = _same_domain(case, there, term.topology_key)
            pods = pods_on(
                near, case.actual, _other_than(case, partial(_carries, term)), _MOST_EVICTED
            )
            where = f"{on_nodes(there, case.actual)} ({term.topology_key})"
            told = f"the anti-affinity of pods near {where}"
            edits = (EvictPods(pods),) if pods else ()
            yield Advice(f"{told} repels it", edits, pods[:MOST_BLOCKERS], kind="pod-anti-affinity")


def _carries(term: Term, pod: Pod) -> bool:
    return term in pod.terms.anti_affinity


def _same_domain(case: Case, rows: RowNumbers, key: str) -> RowNumbers:
    codes = case.actual.label(key).codes
    return case.alive[np.isin(codes[case.alive], np.unique(codes[rows]))]


def _other_than(case: Case, wanted: Callable[[Pod], bool]) -> Callable[[Pod], bool]:
    """Whether a pod is wanted, and not the one in question, which may be there already."""
    away = {pod.uid for pod, _ in case.gone}
    return lambda pod: pod.uid not in away and wanted(pod)
