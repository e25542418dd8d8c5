"""The best of domains of which it is counted how many like pods they take."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Nodes
from mooring.cluster.changes import Change
from mooring.framework.plugin import MAX_SCORE

from .domain_use import find_requested_in, measure_fullness
from .group_result import Domain
from .key_domains import find_changed, has_all, split_by

Numbers = NDArray[np.int64]

_ALLOCATABLE = int(Change.ALLOCATABLE)


@dataclass(frozen=True, slots=True)
class DomainQuestion:
    """What decides between domains besides their nodes."""

    #: The label of the domains; empty if they have none in common.
    key: str
    #: What each member asks for, by resource that is scored, and their weights.
    asked: Mapping[str, int]
    resources: Mapping[str, int]
    #: How many members have a node already, and how many must.
    scheduled: int
    needed: int

    @property
    def signature(self) -> Hashable:
        amounts = tuple((name, self.asked.get(name, 0)) for name in self.resources)
        return self.key, amounts, tuple(self.resources.values()), self.scheduled, self.needed


@dataclass(slots=True)
class _KeptChoice:
    """The best domain, and for which numbers of pods, when and how full it was so."""

    best: int
    counts: Numbers
    generation: int
    requested: Numbers


def choose_domain(
    question: DomainQuestion,
    enough: NDArray[np.intp],
    counts: Numbers,
    domains: Sequence[Domain],
    nodes: Nodes,
) -> int:
    """The place of the best of the domains that take enough members.

    Counted is how many members each domain takes.
    """

    def choose() -> int:
        return _choose(question, enough, counts, domains, nodes)

    if nodes.changes is None or not has_all(domains, question.key, nodes):
        return choose()
    return _find_kept(question, counts, nodes, choose).best


def _choose(
    question: DomainQuestion,
    enough: NDArray[np.intp],
    counts: Numbers,
    domains: Sequence[Domain],
    nodes: Nodes,
) -> int:
    amounts = [[question.asked.get(name, 0)] for name in question.resources]
    added = counts * np.array(amounts, np.int64).reshape(len(amounts), 1)
    fullness = measure_fullness(domains, added, question.resources, nodes, question.key)[enough]
    shares = share_members(question.scheduled + counts[enough])
    # The first of the best, by name.
    return int(enough[int((fullness + shares).argmax())])


def share_members(counts: Numbers) -> Numbers:
    """How many members each domain has, of the most that any has, from 0 to 100."""
    most = max(1, int(counts.max(initial=0)))
    return counts * MAX_SCORE // most


def _find_kept(
    question: DomainQuestion, counts: Numbers, nodes: Nodes, choose: Callable[[], int]
) -> _KeptChoice:
    log = nodes.changes
    assert log is not None, "only rows that are there are kept"

    def keep() -> _KeptChoice:
        best = choose()
        requested = find_requested_in(best, question.resources, nodes, question.key)
        return _KeptChoice(best, counts.copy(), log.generation, requested)

    key = "choice", question.signature, nodes.resources_version
    kept = nodes.derived.get(key, keep)
    if not _holds(kept, question, counts, nodes):
        fresh = keep()
        kept.best, kept.counts, kept.requested = fresh.best, fresh.counts, fresh.requested
    kept.generation = log.generation
    return kept


def _holds(kept: _KeptChoice, question: DomainQuestion, counts: Numbers, nodes: Nodes) -> bool:
    """Whether the best domain is still the best: it became fuller, and the others did not change.

    The fuller a domain is the better, as long as it takes as many members as before.
    """
    changed = find_changed(kept.generation, nodes)
    if changed is None or not np.array_equal(kept.counts, counts):
        return False
    place_of = split_by(question.key, nodes).place_of
    for row, kinds in changed.items():
        if place_of[row] != kept.best or kinds & _ALLOCATABLE:
            return False
    requested = find_requested_in(kept.best, question.resources, nodes, question.key)
    before, kept.requested = kept.requested, requested
    return bool((requested >= before).all())
