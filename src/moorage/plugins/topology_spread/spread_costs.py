"""The costs of a pod's soft spread constraints on each node: they grow with the pods there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, PodMatch, Rows, Tally, View
from moorage.cluster.arrays import freeze
from moorage.cluster.labels import ABSENT, LabelColumn
from moorage.framework.plugin import Scores
from moorage.objects.node import HOSTNAME
from moorage.objects.pod import Pod

from .spread_constraints import Constraint, Inclusion, count_in_domains

#: The raw score of a node that is not compared with the others; others are never below 0.
IGNORED = -1

# The most tables that are kept. Each has an amount for every number of pods on a node.
_MOST_TABLES = 16


@dataclass(frozen=True, slots=True)
class Cost:
    """What a constraint adds to raw scores: some amounts, and per row the place of its amount.

    The last amount is that of nodes without the topology key.
    """

    amounts: NDArray[np.float64]
    places: NDArray[np.intp] | NDArray[np.int32]

    def on(self, rows: Rows) -> NDArray[np.float64]:
        return self.amounts[self.places[rows]]


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of all soft constraints of a pod, and the compared rows; None means every node.

    They are valid until a pod comes or goes.
    """

    each: tuple[Cost, ...]
    compared: Mask | None

    def on(self, rows: Rows) -> Scores:
        """Returns the raw scores of rows."""
        first, *others = self.each
        costs = first.on(rows)
        for each in others:
            costs = costs + each.on(rows)
        scores = _round_up(costs)
        if self.compared is not None:
            scores[~self.compared[rows]] = IGNORED
        return scores


@dataclass(frozen=True, slots=True)
class SoftRule:
    """A soft constraint, the pods that it counts, and the nodes that it includes (None for all)."""

    constraint: Constraint
    match: PodMatch | None
    column: LabelColumn
    included: Mask | None

    @property
    def is_by_name(self) -> bool:
        return self.constraint.topology_key == HOSTNAME

    def find_cost(self, tally: Tally | None, nodes: View, feasible: NDArray[np.intp]) -> Cost:
        """Returns its current cost on all rows. The feasible rows decide how many domains count."""
        column = self.column
        if self.is_by_name:
            return self._find_cost_by_name(tally, nodes, len(feasible))
        counts = count_in_domains(tally, column, self.included)
        nameless = column.vocabulary.code("")
        if tally is not None and nameless != ABSENT and column.filled < len(nodes):
            counts = counts.copy()
            counts[nameless] += self._count_unlabelled(tally, nodes)
        size = _count_domains(column, nodes, feasible)
        amounts = _weigh(counts, size, self.constraint.max_skew)
        return Cost(amounts, _find_places(column, nodes, len(amounts)))

    def _count_unlabelled(self, tally: Tally, nodes: View) -> int:
        """Returns the pods on nodes without the key, which count for the domain without a name."""
        rows = nodes.everything
        unlabelled = self.column.codes[rows] == ABSENT
        if self.included is not None:
            unlabelled &= self.included
        return int(tally.by_row[rows][unlabelled].sum())

    def _find_cost_by_name(self, tally: Tally | None, nodes: View, size: int) -> Cost:
        """Returns its current cost by host name, where each node is a domain."""
        rows = nodes.everything
        # The place after all counts is that of nodes without a host name.
        most = 1 if tally is None else tally.highest + 1
        amounts = _weigh_up_to(most, size, self.constraint.max_skew)
        if tally is None or self.match is None:
            counts = np.zeros(nodes.count(rows), np.int32)
        else:
            # Not of the tally: nodes may be shown as if nothing ran there.
            matching = nodes.matching_pods(self.match)[rows]
            if self.column.filled == len(nodes):
                return Cost(amounts, freeze(matching))
            counts = matching.copy()
        if self.column.filled < len(nodes):
            counts[self.column.codes[rows] == ABSENT] = most
        return Cost(amounts, counts)


@dataclass(slots=True)
class SoftRules:
    """The soft constraints of like pods, and what follows from them for the nodes."""

    each: tuple[SoftRule, ...]
    #: The rows that are compared; None means every node.
    compared: Mask | None

    @classmethod
    def of(
        cls, constraints: Iterable[Constraint], pod: Pod, nodes: View, inclusion: Inclusion
    ) -> SoftRules:
        matches: dict[PodMatch | None, PodMatch | None] = {}
        rules = []
        for each in constraints:
            match = each.counted(pod.namespace)
            # Constraints that count the same pods share one match.
            match = matches.setdefault(match, match)
            column = nodes.label(each.topology_key)
            # By host name, the pods of a node count even if it is not included.
            included = None if each.topology_key == HOSTNAME else inclusion.of(each).rows
            rules.append(SoftRule(each, match, column, included))
        return cls(tuple(rules), inclusion.complete)

    def find_costs(self, nodes: View, rows: NDArray[np.intp]) -> Costs:
        """Returns their current costs, for a pod that these rows accept."""
        feasible = rows if self.compared is None else rows[self.compared[rows]]
        match: PodMatch | None = None
        tally: Tally | None = None
        costs = []
        for rule in self.each:
            if rule.match is not match:
                match = rule.match
                tally = None if match is None else nodes.tally(match)
            costs.append(rule.find_cost(tally, nodes, feasible))
        return Costs(tuple(costs), self.compared)


def _find_places(column: LabelColumn, nodes: View, size: int) -> NDArray[np.intp]:
    """Returns per row the code of its label, or the last of `size` places if it has none."""

    def find() -> NDArray[np.intp]:
        codes = column.codes[nodes.everything]
        return freeze(np.where(codes == ABSENT, size - 1, codes).astype(np.intp))

    return nodes.derived.get((Cost, column.key, size), find)


def _round_up(costs: NDArray[np.float64]) -> Scores:
    """Returns costs rounded to whole numbers; halves are rounded up, never to even."""
    rounded: Scores = (np.floor(2 * costs).astype(np.int64) + 1) // 2
    return rounded


def _weigh(counts: NDArray[np.int64], size: int, max_skew: int) -> NDArray[np.float64]:
    """Returns the amount for each count of pods, in a topology of `size` domains."""
    # The more domains, the more a pod in one of them weighs.
    amounts: NDArray[np.float64] = np.multiply(counts, math.log(size + 2), dtype=np.float64)
    amounts += max_skew - 1
    amounts[-1] = 0.0
    return amounts


@lru_cache(_MOST_TABLES)
def _weigh_up_to(most: int, size: int, max_skew: int) -> NDArray[np.float64]:
    """Returns the amounts for 0 to `most` - 1 pods, and last that of nodes without the key."""
    return freeze(_weigh(np.arange(most + 1), size, max_skew))


def _count_domains(column: LabelColumn, nodes: View, feasible: NDArray[np.intp]) -> int:
    """Returns the number of domains of the feasible rows.

    Nodes without the key are one more, together with those that have it without a value.
    """
    nameless = column.vocabulary.code("")
    if len(feasible) == len(nodes):
        lack_name = column.filled < len(nodes) and nameless == ABSENT
        return len(column.vocabulary.in_use()) + lack_name
    seen = np.zeros(len(column.vocabulary) + 1, np.bool_)
    seen[column.codes[feasible]] = True
    if nameless != ABSENT:
        seen[nameless] |= seen[ABSENT]
        seen[ABSENT] = False
    return int(np.count_nonzero(seen))
