"""Chooses the best of domains, given how many like pods each takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes
from moorage.framework.plugin import MAX_SCORE

from .domain_use import measure_fullness
from .group_result import Domain

Numbers = NDArray[np.int64]


class BestDomain(NamedTuple):
    """The best domain for a gang, by its position among all domains of its label."""

    place: int
    #: How many members it takes.
    members: int
    #: How many domains take enough members.
    feasible: int


class DomainQuestion(NamedTuple):
    """What decides between domains besides their nodes."""

    #: The label of the domains; empty if they have none in common.
    key: str
    #: What each member asks for, by resource that is scored, and their weights.
    asked: Mapping[str, int]
    resources: Mapping[str, int]
    #: How many members must have a node: none has one, or its domain would be the only choice.
    needed: int
    #: The weights of how full a domain is, and of its share of members.
    weights: tuple[int, int] = (1, 1)

    def find_enough(self, counts: Numbers) -> NDArray[np.intp]:
        """Returns the positions of the domains that take enough members."""
        return np.flatnonzero((counts > 0) & (counts >= self.needed))


def choose_domain(
    question: DomainQuestion,
    enough: NDArray[np.intp],
    counts: Numbers,
    domains: Sequence[Domain],
    nodes: Nodes,
) -> int:
    """Returns the position of the best of the domains that take enough members.

    `counts` is how many members each domain takes.
    """
    amounts = [[question.asked.get(name, 0)] for name in question.resources]
    added = counts * np.array(amounts, np.int64).reshape(len(amounts), 1)
    fullness = measure_fullness(domains, added, question.resources, nodes, question.key)[enough]
    shares = share_members(counts[enough])
    of_fullness, of_members = question.weights
    # The first of the best, by name.
    return int(enough[int((of_fullness * fullness + of_members * shares).argmax())])


def share_members(counts: Numbers) -> Numbers:
    """Returns the members of each domain, as a share from 0 to 100 of the largest number."""
    most = max(1, int(counts.max(initial=0)))
    return counts * MAX_SCORE // most
