"""Where the pods are that the affinity terms of a pod speak of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, PodMatch, Rows, View
from moorage.cluster.labels import ABSENT, LabelColumn
from moorage.cluster.tally import DomainCounts
from moorage.cluster.workloads import KnownWorkloads
from moorage.objects.placement_rules import AffinityTerm
from moorage.objects.selector import Labels

_NO_LABELS: Labels = {}


class Presence(NamedTuple):
    """A number per domain of a topology key: of pods, or of what they add up to."""

    column: LabelColumn
    #: int64 per code; the last place is 0, so that ABSENT finds nothing.
    counts: NDArray[np.int64]

    def on(self, rows: Rows) -> NDArray[np.int64]:
        return self.counts.take(self.column.codes[rows])

    def anywhere(self, rows: Rows) -> Mask:
        """Returns where there is any such pod in the domain."""
        return (self.counts > 0).take(self.column.codes[rows])

    def moved(self, row: int, amount: int) -> Presence:
        """This presence with more or fewer pods on a row."""
        code = int(self.column.codes[row])
        if code == ABSENT:
            return self
        counts = self.counts.copy()
        counts[code] += amount
        return Presence(self.column, counts)


def presence_of(match: PodMatch | None, key: str, nodes: View) -> Presence:
    column = nodes.label(key)
    if match is None:
        return Presence(column, np.zeros(len(column.vocabulary) + 1, np.int64))
    return Presence(column, nodes.tally(match).in_domains(column).counts())


def add_up(parts: Iterable[tuple[DomainCounts, int]]) -> dict[str, Presence]:
    """Returns the weighted sum of counts, per topology key."""
    sums: dict[str, Presence] = {}
    own: set[str] = set()
    for domains, weight in parts:
        if domains.total == 0:
            continue
        key = domains.column.key
        known = sums.get(key)
        if known is None:
            counts = domains.counts() if weight == 1 else domains.counts() * weight
            sums[key] = Presence(domains.column, counts)
            continue
        if key not in own:
            # The first part may be the running count itself, which is not ours to change.
            own.add(key)
            known = sums[key] = Presence(known.column, known.counts.copy())
        domains.add_to(known.counts, weight)
    return sums


@dataclass(frozen=True, slots=True)
class TermMatcher:
    """Finds out which pods the terms of an incoming pod are about."""

    #: Up to 1.36, kube-scheduler matches a namespace selector a second time, then with no labels
    #: at all: one that accepts these selects every namespace.
    widens_selectors: bool = True

    def match(self, terms: Sequence[AffinityTerm], workloads: KnownWorkloads) -> PodMatch | None:
        """Returns the match of all terms at once; None if no pod can match."""
        pairs = []
        for term in terms:
            if term.selector is None:
                return None
            pairs.append((self._find_namespaces(term, workloads), term.selector))
        return PodMatch(tuple(pairs)) if pairs else None

    def _find_namespaces(
        self, term: AffinityTerm, workloads: KnownWorkloads
    ) -> frozenset[str] | None:
        """Returns the namespaces that a term is about; None if that is every one."""
        wanted = term.namespace_selector
        if wanted is None:
            return term.namespaces
        if not wanted or (self.widens_selectors and wanted.matches(_NO_LABELS)):
            return None
        return term.namespaces | workloads.namespaces_matching(wanted)
