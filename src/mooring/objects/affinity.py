"""Inter-pod affinity: terms that attract a pod to, or repel it from, the domains of other pods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .meta import Wire
from .node_selector import NodeAffinity
from .selector import Labels, LabelSelector, Selector, SelectorError, compile_selector


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


class Affinity(Wire, frozen=True):
    """All affinity rules of a pod, as written."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


@dataclass(frozen=True, slots=True)
class Term:
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

    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferred: tuple[tuple[Term, int], ...] = ()
    preferred_anti: tuple[tuple[Term, int], ...] = ()
    problem: str = ""

    def __bool__(self) -> bool:
        return bool(self.affinity or self.anti_affinity or self.preferred or self.preferred_anti)

    def __iter__(self) -> Iterator[Term]:
        yield from self.affinity
        yield from self.anti_affinity
        for term, _ in self.preferred + self.preferred_anti:
            yield term


NO_TERMS = Terms()


def compile_terms(written: Affinity | None, namespace: str) -> Terms:
    """The terms of a pod in a namespace."""
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
        _weighted(towards.preferred, namespace),
        _weighted(away.preferred, namespace),
    )


def _weighted(
    written: tuple[WeightedPodAffinityTerm, ...], namespace: str
) -> tuple[tuple[Term, int], ...]:
    return tuple(
        (compile_affinity_term(each.pod_affinity_term, namespace), each.weight) for each in written
    )


def compile_affinity_term(written: PodAffinityTerm, namespace: str) -> Term:
    """One term; without namespaces and namespace selector it means the pod's own namespace."""
    namespaces = frozenset(written.namespaces or ())
    if not namespaces and written.namespace_selector is None:
        namespaces = frozenset((namespace,))
    return Term(
        written.topology_key,
        compile_selector(written.label_selector),
        namespaces,
        compile_selector(written.namespace_selector),
    )
