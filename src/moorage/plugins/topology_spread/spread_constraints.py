"""Topology spread constraints as decisions use them: compiled, and with the pods they count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, PodMatch, Tally, View
from moorage.cluster.labels import LabelColumn
from moorage.objects.node import HOSTNAME, ZONE
from moorage.objects.per_template import once_per_template
from moorage.objects.placement_rules import Taint, TopologySpreadConstraint, is_tolerated
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from moorage.objects.selector import Labels, Selector, equality

WhenUnsatisfiable = Literal["DoNotSchedule", "ScheduleAnyway"]
HARD: WhenUnsatisfiable = "DoNotSchedule"
SOFT: WhenUnsatisfiable = "ScheduleAnyway"

#: The constraints for pods of a service or controller if neither pod nor profile has constraints.
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
        """Returns which running pods count; None if none do.

        A selector without requirements counts no pod, although it selects every pod.
        """
        if not self.selector:
            return None
        return PodMatch(((frozenset((namespace,)), self.selector),), skip_terminating=True)


def own_constraints(pod: Pod, action: WhenUnsatisfiable) -> tuple[Constraint, ...]:
    """Returns the constraints of a pod's spec that have this effect.

    They are kept with the template, unless they depend on the pod's labels.
    """
    known = _known_constraints(pod.spec)
    found = known.get(action)
    if found is None:
        written = pod.spec.topology_spread_constraints or ()
        found = tuple(
            _compile(each, _selector(each, pod.labels))
            for each in written
            if each.when_unsatisfiable == action
        )
        if not any(each.match_label_keys for each in written):
            known[action] = found
    return found


@once_per_template
def _known_constraints(spec: PodSpec) -> dict[WhenUnsatisfiable, tuple[Constraint, ...]]:
    """Returns the constraints of a template that are known so far, by their effect."""
    return {}


def default_constraints(
    written: Iterable[TopologySpreadConstraint], siblings: Selector
) -> tuple[Constraint, ...]:
    """Returns the constraints of a pod without its own. They count the pods of `siblings`."""
    return tuple(_compile(each, siblings) for each in written)


def _compile(written: TopologySpreadConstraint, selector: Selector | None) -> Constraint:
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


@dataclass(frozen=True, slots=True)
class Included:
    """The rows that count for a constraint of a pod; None means every node."""

    rows: Mask | None
    #: Which codes of the topology key occur there; the last place is False.
    domains: Mask
    domain_count: int


class Inclusion:
    """The rows that count for a pod: they have all topology keys, and the policies include them."""

    def __init__(self, pod: Pod, nodes: View, keys: Iterable[str] = (), *, compares: bool) -> None:
        self._pod = pod
        self._nodes = nodes
        self._keys = tuple(dict.fromkeys(keys))
        self._compares = compares

    @property
    def complete(self) -> Mask | None:
        """Returns the rows that have every topology key; None if every node has."""
        nodes = self._nodes
        key = Inclusion, self._keys
        return nodes.derived.get(key, lambda: (with_all_keys(self._keys, nodes),))[0]

    def of(self, constraint: Constraint) -> Included:
        """Returns the rows of a constraint. Like pods get the same object until a node changes."""
        honors = constraint.honors_node_affinity, constraint.honors_taints
        spec = self._pod.spec
        wants = tuple((spec.node_selector or {}).items()), spec.node_terms
        tolerates = spec.tolerations if constraint.honors_taints else None
        key = (
            Included,
            constraint.topology_key,
            self._keys,
            honors,
            wants if constraint.honors_node_affinity else None,
            (tolerates, self._compares),
        )
        return self._nodes.derived.get(key, lambda: self._find_included(constraint))

    def _find_included(self, constraint: Constraint) -> Included:
        rows = self.complete
        if constraint.honors_node_affinity:
            rows = both(rows, self._by_affinity())
        if constraint.honors_taints:
            rows = both(rows, self._by_taints())
        domains = domains_among(constraint, self._nodes, rows)
        return Included(rows, domains, int(np.count_nonzero(domains)))

    def _by_affinity(self) -> Mask | None:
        nodes, spec = self._nodes, self._pod.spec
        chosen = None
        if spec.node_selector:
            chosen = nodes.selected(spec.node_selector, nodes.everything)
        if spec.node_terms is not None:
            chosen = both(chosen, nodes.satisfying_any(spec.node_terms, nodes.everything))
        return chosen

    def _by_taints(self) -> Mask | None:
        nodes = self._nodes
        accepted = np.ones(len(nodes.taints), np.bool_)
        for taints, code in nodes.taints.in_use().items():
            accepted[code] = not any(self._repels(taint) for taint in taints)
        return None if accepted.all() else accepted[nodes.taint_sets[nodes.everything]]

    def _repels(self, taint: Taint) -> bool:
        return taint.effect in ("NoSchedule", "NoExecute") and not is_tolerated(
            taint, self._pod.spec.tolerations or (), compares=self._compares
        )


def with_all_keys(keys: Iterable[str], nodes: View) -> Mask | None:
    """Returns the rows that have every label key; None if every node has."""
    complete = None
    for key in keys:
        column = nodes.label(key)
        if column.filled < len(nodes):
            complete = both(complete, column.codes[nodes.everything] >= 0)
    return complete


def both(one: Mask | None, other: Mask | None) -> Mask | None:
    """Returns the rows of both; None means every node."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def pods_per_domain(
    constraint: Constraint, namespace: str, nodes: View, among: Mask | None
) -> NDArray[np.int64]:
    """Returns how many pods count on some rows, per code of the topology key.

    `among` of None means every node. The last number is that of ABSENT and has no meaning.
    """
    column = nodes.label(constraint.topology_key)
    match = constraint.counted(namespace)
    return count_in_domains(None if match is None else nodes.tally(match), column, among)


def count_in_domains(
    tally: Tally | None, column: LabelColumn, among: Mask | None
) -> NDArray[np.int64]:
    """Returns how many pods of a tally run on some rows, per code of a label.

    A tally of None has no pods.
    """
    if tally is None:
        return np.zeros(len(column.vocabulary) + 1, np.int64)
    kept = tally.in_domains(column) if among is None else tally.in_domains_among(column, among)
    return kept.counts()


def domains_among(constraint: Constraint, nodes: View, among: Mask | None) -> Mask:
    """Returns which codes of the topology key occur on some rows; the last place is False."""
    column = nodes.label(constraint.topology_key)
    found = np.zeros(len(column.vocabulary) + 1, np.bool_)
    if among is None and len(column.vocabulary.in_use()) == len(column.vocabulary):
        found[:] = True
    else:
        codes = column.codes[nodes.everything]
        found[codes if among is None else codes[among]] = True
    found[-1] = False
    return found
