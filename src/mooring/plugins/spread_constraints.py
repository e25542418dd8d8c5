"""Topology spread constraints as decisions use them: compiled, and with the pods they count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Mask, Nodes, PodMatch
from mooring.objects.node import HOSTNAME, ZONE
from mooring.objects.pod import Pod
from mooring.objects.selector import Labels, Selector, equality
from mooring.objects.spread import TopologySpreadConstraint
from mooring.objects.taint import Taint, tolerated

WhenUnsatisfiable = Literal["DoNotSchedule", "ScheduleAnyway"]
HARD: WhenUnsatisfiable = "DoNotSchedule"
SOFT: WhenUnsatisfiable = "ScheduleAnyway"

#: What spreads the pods of a service or controller when nobody has said anything.
SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SOFT),
)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A compiled constraint. A selector of None matches no pod."""

    topology_key: str
    max_skew: int
    selector: Selector | None
    min_domains: int = 1
    honors_node_affinity: bool = True
    honors_taints: bool = False

    def selects(self, labels: Labels) -> bool:
        return self.selector is not None and self.selector.matches(labels)

    def counted(self, namespace: str) -> PodMatch | None:
        """Which running pods count; None when none do.

        A selector without requirements counts nobody, although it selects every pod.
        """
        if not self.selector:
            return None
        return PodMatch(((frozenset((namespace,)), self.selector),), skip_terminating=True)


def own_constraints(pod: Pod, action: WhenUnsatisfiable) -> tuple[Constraint, ...]:
    """The constraints of a pod's spec that have this effect."""
    return tuple(
        _compiled(written, _selector(written, pod.labels))
        for written in pod.spec.topology_spread_constraints or ()
        if written.when_unsatisfiable == action
    )


def default_constraints(
    written: Iterable[TopologySpreadConstraint], siblings: Selector
) -> tuple[Constraint, ...]:
    """Constraints for a pod without its own, over the pods that belong with it."""
    return tuple(_compiled(each, siblings) for each in written)


def _compiled(written: TopologySpreadConstraint, selector: Selector | None) -> Constraint:
    return Constraint(
        written.topology_key,
        written.max_skew,
        selector,
        1 if written.min_domains is None else written.min_domains,
        written.node_affinity_policy != "Ignore",
        written.node_taints_policy == "Honor",
    )


def _selector(written: TopologySpreadConstraint, labels: Labels) -> Selector | None:
    selector = written.selector
    if selector is None or not written.match_label_keys:
        return selector
    return selector & equality({k: labels[k] for k in written.match_label_keys if k in labels})


class Inclusion:
    """The rows that count for a pod under the constraints' policies; None is every node."""

    def __init__(self, pod: Pod, nodes: Nodes, *, compares: bool) -> None:
        self._pod = pod
        self._nodes = nodes
        self._compares = compares

    def rows(self, constraint: Constraint) -> Mask | None:
        included = None
        if constraint.honors_node_affinity:
            included = self._by_affinity
        if constraint.honors_taints:
            included = both(included, self._by_taints)
        return included

    @cached_property
    def _by_affinity(self) -> Mask | None:
        nodes, spec = self._nodes, self._pod.spec
        chosen = None
        if spec.node_selector:
            chosen = nodes.selected(spec.node_selector, nodes.everything)
        if spec.node_terms is not None:
            chosen = both(chosen, nodes.satisfying_any(spec.node_terms, nodes.everything))
        return chosen

    @cached_property
    def _by_taints(self) -> Mask | None:
        nodes = self._nodes
        accepted = np.ones(len(nodes.taints), np.bool_)
        for taints, code in nodes.taints.in_use().items():
            accepted[code] = not any(self._repels(taint) for taint in taints)
        return None if accepted.all() else accepted[nodes.taint_sets[nodes.everything]]

    def _repels(self, taint: Taint) -> bool:
        return taint.effect in ("NoSchedule", "NoExecute") and not tolerated(
            taint, self._pod.spec.tolerations or (), compares=self._compares
        )


def with_all_keys(constraints: Iterable[Constraint], nodes: Nodes) -> Mask | None:
    """The rows that have every topology key; None when every node has."""
    complete = None
    for key in dict.fromkeys(constraint.topology_key for constraint in constraints):
        column = nodes.label(key)
        if column.filled < len(nodes):
            complete = both(complete, column.codes[nodes.everything] >= 0)
    return complete


def both(one: Mask | None, other: Mask | None) -> Mask | None:
    """The rows of both; None is every node."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def pods_per_domain(
    constraint: Constraint, namespace: str, nodes: Nodes, among: Mask | None
) -> NDArray[np.int64]:
    """The pods that count on some rows, per code of the topology key.

    The last place is ABSENT's and means nothing. `among` None is every node: these counts are
    kept anyway.
    """
    column = nodes.label(constraint.topology_key)
    match = constraint.counted(namespace)
    absent = len(column.vocabulary)
    if match is None:
        return np.zeros(absent + 1, np.int64)
    tally = nodes.tally(match)
    if among is None:
        return tally.in_domains(column).counts()
    codes = np.where(among, column.codes[nodes.everything], absent)
    codes[codes < 0] = absent
    return np.bincount(codes, tally.by_row[nodes.everything], absent + 1).astype(np.int64)


def domains_among(constraint: Constraint, nodes: Nodes, among: Mask | None) -> Mask:
    """Which codes of the topology key occur on some rows; the last place is False."""
    column = nodes.label(constraint.topology_key)
    found = np.zeros(len(column.vocabulary) + 1, np.bool_)
    if among is None and len(column.vocabulary.in_use()) == len(column.vocabulary):
        found[:] = True
    else:
        codes = column.codes[nodes.everything]
        found[codes if among is None else codes[among]] = True
    found[-1] = False
    return found
