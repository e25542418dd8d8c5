"""The affinity terms of pods that run: how many such pods each domain holds, per distinct term."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from moorage.objects.per_template import once_per_template
from moorage.objects.placement_rules import AffinityTerm, Terms
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from moorage.objects.selector import Labels

from .label_index import LabelKeys, SelectorIndex
from .labels import LabelColumn
from .tally import DomainCounts


class TermKind(StrEnum):
    """What a term of a running pod means to a pod that comes."""

    AFFINITY = "required affinity"
    ANTI_AFFINITY = "required anti-affinity"
    PREFERRED = "preferred affinity"
    PREFERRED_ANTI = "preferred anti-affinity"


@dataclass(frozen=True, slots=True)
class StandingKey:
    """What makes two terms of running pods the same."""

    kind: TermKind
    term: AffinityTerm
    weight: int = 0
    #: Every pod that comes or goes is looked up by it.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.kind, self.term, self.weight)))

    def __hash__(self) -> int:
        return self._hash


class StandingTerm:
    """A distinct term and the domains of the running pods that carry it."""

    def __init__(self, key: StandingKey, column: LabelColumn) -> None:
        self.kind = key.kind
        self.term = key.term
        self.weight = key.weight
        self.domains = DomainCounts(column)
        self.pods = 0


class StandingTerms:
    """All terms of running pods, found by the labels of the pod that they might concern."""

    def __init__(self, label_keys: LabelKeys) -> None:
        self._label_keys = label_keys
        self._terms: dict[StandingKey, StandingTerm] = {}
        self._index: dict[TermKind, SelectorIndex[StandingTerm]] = {
            kind: SelectorIndex() for kind in TermKind
        }

    def count(self, pod: Pod, row: int, amount: int, column: Callable[[str], LabelColumn]) -> None:
        """A pod came to (1) or left (-1) a row, with its terms."""
        for key in _find_keys(pod):
            standing = self._terms.get(key)
            if standing is None:
                standing = self._new(key, column(key.term.topology_key))
            standing.domains.add(row, amount)
            standing.pods += amount
            if standing.pods == 0:
                self._drop(key, standing)

    def has(self, kind: TermKind) -> bool:
        """Whether there are terms of a kind that may match a pod."""
        return bool(self._index[kind])

    def concerning(
        self, kind: TermKind, pod: Pod, namespace_labels: Labels
    ) -> Iterator[StandingTerm]:
        """Yields the terms of a kind that match a pod."""
        for standing in self._index[kind].candidates(pod.labels):
            if standing.term.matches(pod.namespace, pod.labels, namespace_labels):
                yield standing

    def __iter__(self) -> Iterator[tuple[StandingKey, StandingTerm]]:
        return iter(self._terms.items())

    def _new(self, key: StandingKey, column: LabelColumn) -> StandingTerm:
        standing = self._terms[key] = StandingTerm(key, column)
        self._label_keys.add(key.term.selector)
        if key.term.selector is not None:
            self._index[key.kind].add(key.term.selector, standing)
        return standing

    def _drop(self, key: StandingKey, standing: StandingTerm) -> None:
        del self._terms[key]
        self._label_keys.discard(key.term.selector)
        if key.term.selector is not None:
            self._index[key.kind].discard(key.term.selector, standing)


def _find_keys(pod: Pod) -> tuple[StandingKey, ...]:
    """Returns what the terms of a pod are counted by; found out once per template and namespace."""
    if pod.spec.affinity is None:
        return ()
    by_namespace = _known_keys(pod.spec)
    known = by_namespace.get(pod.namespace)
    if known is None:
        known = by_namespace[pod.namespace] = tuple(_keys(pod.terms))
    return known


@once_per_template
def _known_keys(spec: PodSpec) -> dict[str, tuple[StandingKey, ...]]:
    """Returns the keys of a template that are known so far, by namespace."""
    return {}


def _keys(terms: Terms) -> Iterator[StandingKey]:
    for term in terms.affinity:
        yield StandingKey(TermKind.AFFINITY, term)
    for term in terms.anti_affinity:
        yield StandingKey(TermKind.ANTI_AFFINITY, term)
    for term, weight in terms.preferred:
        yield StandingKey(TermKind.PREFERRED, term, weight)
    for term, weight in terms.preferred_anti:
        yield StandingKey(TermKind.PREFERRED_ANTI, term, weight)
