"""Where a pod may go and where it would rather be: tolerations, inter-pod affinity, spreading."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from .lazy_property import lazy_property
from .meta import Wire
from .node_selector import NodeAffinityRules
from .selector import Labels, LabelSelector, Selector, SelectorError, compile_selector

TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]

# The number format of Lt and Gt: no plus sign, no leading zeros.
_PLAIN_INT = re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII)


class Taint(Wire, frozen=True):
    """A mark on a node that repels pods which do not tolerate it."""

    key: str
    effect: TaintEffect
    value: str = ""


#: The taint of a cordoned node.
CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class Toleration(Wire, frozen=True):
    """A pod's consent to taints of a kind."""

    key: str = ""
    operator: Literal["", "Equal", "Exists", "Lt", "Gt"] = ""
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""

    def tolerates(self, taint: Taint, *, compares: bool = False) -> bool:
        """Whether this accepts the taint; `compares` lets Lt and Gt compare numbers."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "" | "Equal":
                return self.value == taint.value
            case "Exists":
                return True
            case "Lt" | "Gt":
                return compares and self._compares(taint.value)

    def _compares(self, taint_value: str) -> bool:
        ours, theirs = _plain_int(self.value), _plain_int(taint_value)
        if ours is None or theirs is None:
            return False
        return theirs < ours if self.operator == "Lt" else theirs > ours


def is_tolerated(
    taint: Taint, tolerations: Iterable[Toleration], *, compares: bool = False
) -> bool:
    """Whether any toleration accepts the taint."""
    return any(each.tolerates(taint, compares=compares) for each in tolerations)


def _plain_int(text: str) -> int | None:
    if not _PLAIN_INT.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


InclusionPolicy = Literal["Honor", "Ignore"]


class TopologySpreadConstraint(Wire, frozen=True, dict=True):
    """How evenly matching pods are spread over the values of a topology key."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: InclusionPolicy | None = None
    node_taints_policy: InclusionPolicy | None = None
    match_label_keys: tuple[str, ...] | None = None

    @lazy_property
    def selector(self) -> Selector | None:
        """Returns the compiled selector; raises SelectorError where it cannot be read."""
        return compile_selector(self.label_selector)

    @property
    def label_keys(self) -> Iterator[str]:
        """The labels that the constraint reads of its own pod and of others."""
        if self.label_selector is not None:
            yield from self.label_selector.keys
        yield from self.match_label_keys or ()


class PodAffinityTerm(Wire, frozen=True):
    """Which pods, in which namespaces, over which topology; as written."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(Wire, frozen=True):
    """A preferred term, as written."""

    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Wire, frozen=True):
    """Rules towards other pods, as written; the same shape serves affinity and anti-affinity."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: (
        tuple[WeightedPodAffinityTerm, ...] | None
    ) = None

    @property
    def required(self) -> tuple[PodAffinityTerm, ...]:
        return self.required_during_scheduling_ignored_during_execution or ()

    @property
    def preferred(self) -> tuple[WeightedPodAffinityTerm, ...]:
        return self.preferred_during_scheduling_ignored_during_execution or ()

    @property
    def terms(self) -> tuple[PodAffinityTerm, ...]:
        """All of its terms, without weights."""
        return *self.required, *(each.pod_affinity_term for each in self.preferred)


class Affinity(Wire, frozen=True):
    """All affinity rules of a pod, as written."""

    node_affinity: NodeAffinityRules | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None

    @property
    def label_keys(self) -> Iterator[str]:
        """The labels that its terms read of other pods."""
        for rules in (self.pod_affinity, self.pod_anti_affinity):
            if rules is not None:
                for term in rules.terms:
                    if term.label_selector is not None:
                        yield from term.label_selector.keys


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """A compiled affinity term. A selector of None matches no pod."""

    topology_key: str
    selector: Selector | None
    namespaces: frozenset[str]
    namespace_selector: Selector | None = None

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        if self.selector is None or not self.selector.matches(labels):
            return False
        if namespace in self.namespaces:
            return True
        wanted = self.namespace_selector
        return wanted is not None and wanted.matches(namespace_labels)


@dataclass(frozen=True, slots=True)
class Terms:
    """The compiled affinity terms of a pod; preferred ones with their weights.

    `problem` says why they cannot be read, if so; then there are none.
    """

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[tuple[AffinityTerm, int], ...] = ()
    preferred_anti: tuple[tuple[AffinityTerm, int], ...] = ()
    problem: str = ""

    def __bool__(self) -> bool:
        return bool(self.affinity or self.anti_affinity or self.preferred or self.preferred_anti)

    def __iter__(self) -> Iterator[AffinityTerm]:
        yield from self.affinity
        yield from self.anti_affinity
        for term, _ in self.preferred + self.preferred_anti:
            yield term


NO_TERMS = Terms()


def compile_terms(written: Affinity | None, namespace: str) -> Terms:
    """Returns the terms of a pod in a namespace."""
    if written is None:
        return NO_TERMS
    try:
        return _compile(written, namespace)
    except SelectorError as error:
        return Terms(problem=str(error))


def _compile(written: Affinity, namespace: str) -> Terms:
    towards = written.pod_affinity or PodAffinity()
    away = written.pod_anti_affinity or PodAffinity()
    return Terms(
        tuple(compile_affinity_term(each, namespace) for each in towards.required),
        tuple(compile_affinity_term(each, namespace) for each in away.required),
        _compile_weighted(towards.preferred, namespace),
        _compile_weighted(away.preferred, namespace),
    )


def _compile_weighted(
    written: tuple[WeightedPodAffinityTerm, ...], namespace: str
) -> tuple[tuple[AffinityTerm, int], ...]:
    return tuple(
        (compile_affinity_term(each.pod_affinity_term, namespace), each.weight) for each in written
    )


def compile_affinity_term(written: PodAffinityTerm, namespace: str) -> AffinityTerm:
    """Returns one term; without any namespaces it means the pod's own namespace."""
    namespaces = frozenset(written.namespaces or ())
    if not namespaces and written.namespace_selector is None:
        namespaces = frozenset((namespace,))
    return AffinityTerm(
        written.topology_key,
        compile_selector(written.label_selector),
        namespaces,
        compile_selector(written.namespace_selector),
    )
