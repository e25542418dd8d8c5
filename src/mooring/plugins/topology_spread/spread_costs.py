"""What the soft spread constraints of a pod cost on each node: the more pods there, the more."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Mask, Nodes, PodMatch, Rows, Tally
from mooring.cluster.arrays import freeze
from mooring.cluster.labels import ABSENT, LabelColumn
from mooring.framework.plugin import Levels, Scores
from mooring.objects.node import HOSTNAME
from mooring.objects.pod import Pod

from .spread_constraints import Constraint, Inclusion, count_in_domains
from .spread_levels import KeptPlaces, round_up

#: The raw score of a node that is not compared with the others; others are never below 0.
IGNORED = -1

# Levels pay if they are fewer than rows by far. So few are always worth it.
_FEW_LEVELS = 64
_ROWS_PER_LEVEL = 4

# Tables of amounts that are kept: each has one for every number of pods on a node.
_MOST_TABLES = 16


@dataclass(frozen=True, slots=True)
class Cost:
    """What a constraint adds to a node's raw score: some amounts, and per row the place of its own.

    The last amount is that of nodes without the topology key.
    """

    amounts: NDArray[np.float64]
    places: NDArray[np.intp] | NDArray[np.int32]

    def on(self, rows: Rows) -> NDArray[np.float64]:
        return self.amounts[self.places[rows]]


@dataclass(frozen=True, slots=True)
class Costs:
    """All soft constraints of a pod, and the rows that are compared; None is every node.

    They are good until a pod comes or goes.
    """

    each: tuple[Cost, ...]
    compared: Mask | None
    #: Where rows have their levels; None if these are found anew.
    kept: KeptPlaces | None = None

    def on(self, rows: Rows) -> Scores:
        """The raw score of rows."""
        first, *others = self.each
        costs = first.on(rows)
        for each in others:
            costs = costs + each.on(rows)
        scores = round_up(costs)
        if self.compared is not None:
            scores[~self.compared[rows]] = IGNORED
        return scores

    def find_levels(self) -> Levels | None:
        """The same for all rows; None if the constraints together have too many amounts."""
        first, *others = self.each
        amounts, places = first.amounts, first.places
        most = max(_FEW_LEVELS, len(places) // _ROWS_PER_LEVEL)
        if self.kept is not None:
            return self.kept.find_levels([each.amounts for each in self.each], most)
        for each in others:
            if len(amounts) * len(each.amounts) > most:
                return None
            places = places * len(each.amounts) + each.places
            # Added in the order of the constraints, as for a single row.
            amounts = np.add.outer(amounts, each.amounts).ravel()
        if len(amounts) > most:
            return None
        numbers = round_up(amounts)
        if self.compared is not None:
            places = np.where(self.compared, places, len(numbers))
            numbers = np.append(numbers, IGNORED)
        return Levels(numbers, places.astype(np.intp, copy=False))


@dataclass(frozen=True, slots=True)
class SoftRule:
    """A soft constraint, the pods that it counts, and the nodes that it includes; None is all."""

    constraint: Constraint
    match: PodMatch | None
    column: LabelColumn
    included: Mask | None

    @property
    def is_by_name(self) -> bool:
        return self.constraint.topology_key == HOSTNAME

    def find_cost(self, tally: Tally | None, nodes: Nodes, feasible: NDArray[np.intp]) -> Cost:
        """What it costs now where a pod can go: on these rows."""
        column = self.column
        if self.is_by_name:
            return self._find_cost_by_name(tally, nodes, len(feasible))
        counts = count_in_domains(tally, column, self.included)
        size = _count_domains(column, nodes, feasible)
        amounts = _weigh(counts, size, self.constraint.max_skew)
        return Cost(amounts, _find_places(column, nodes, len(amounts)))

    def _find_cost_by_name(self, tally: Tally | None, nodes: Nodes, size: int) -> Cost:
        """The same by host name: the pods of each node."""
        rows = nodes.everything
        # One place more than there are counts.
        most = 1 if tally is None else tally.highest + 1
        amounts = _weigh_up_to(most, size, self.constraint.max_skew)
        if tally is None:
            counts = np.zeros(nodes.count(rows), np.int32)
        elif self.column.filled == len(nodes):
            return Cost(amounts, freeze(tally.by_row[rows]))
        else:
            counts = tally.by_row[rows].copy()
        if self.column.filled < len(nodes):
            counts[self.column.codes[rows] == ABSENT] = most
        return Cost(amounts, counts)


@dataclass(slots=True)
class SoftRules:
    """The soft constraints of like pods, and what follows of them from the nodes."""

    each: tuple[SoftRule, ...]
    #: The rows that are compared; None is every node.
    compared: Mask | None
    #: The first constraint by host name; None if there is none.
    by_name: int | None
    #: Whether the places of rows are kept from pod to pod.
    keeps_places: bool
    _kept: KeptPlaces | None = None

    @classmethod
    def of(
        cls, constraints: Iterable[Constraint], pod: Pod, nodes: Nodes, inclusion: Inclusion
    ) -> SoftRules:
        matches: dict[PodMatch | None, PodMatch | None] = {}
        rules = []
        for each in constraints:
            match = each.counted(pod.namespace)
            # The same one for all that count the same pods.
            match = matches.setdefault(match, match)
            column = nodes.label(each.topology_key)
            # By host name, the pods of a node count even if it is not included.
            included = None if each.topology_key == HOSTNAME else inclusion.of(each).rows
            rules.append(SoftRule(each, match, column, included))
        by_name = [at for at, rule in enumerate(rules) if rule.is_by_name]
        keeps_places = inclusion.complete is None and len(by_name) <= 1
        for rule in (rules[at] for at in by_name):
            # A node without a host name has no place among the counts.
            keeps_places &= rule.match is not None and rule.column.filled == len(nodes)
        first = by_name[0] if by_name else None
        return cls(tuple(rules), inclusion.complete, first, keeps_places)

    def find_costs(self, nodes: Nodes, rows: NDArray[np.intp]) -> Costs:
        """What they cost now where a pod can go: on these rows."""
        feasible = rows if self.compared is None else rows[self.compared[rows]]
        match: PodMatch | None = None
        tally: Tally | None = None
        costs, tallies = [], []
        for rule in self.each:
            if rule.match is not match:
                match = rule.match
                tally = None if match is None else nodes.tally(match)
            costs.append(rule.find_cost(tally, nodes, feasible))
            tallies.append(tally)
        kept = None
        if self.keeps_places and nodes.changes is not None:
            kept = self._find_kept(costs, tallies, nodes)
        return Costs(tuple(costs), self.compared, kept)

    def _find_kept(
        self, costs: list[Cost], tallies: list[Tally | None], nodes: Nodes
    ) -> KeptPlaces:
        """The places of rows, up to date."""
        by_name = self.by_name
        tally = None if by_name is None else tallies[by_name]
        width = 1
        for at, each in enumerate(costs):
            if at != by_name:
                width *= len(each.amounts)
        kept = self._kept
        if kept is None or not kept.is_about(width, tally):
            found = [(each.amounts, each.places) for each in costs]
            kept = self._kept = KeptPlaces(found, by_name, tally)
        kept.catch_up(nodes)
        return kept


def _find_places(column: LabelColumn, nodes: Nodes, size: int) -> NDArray[np.intp]:
    """Per row the code of its label, and the last of so many places if it has none."""

    def find() -> NDArray[np.intp]:
        codes = column.codes[nodes.everything]
        return freeze(np.where(codes == ABSENT, size - 1, codes).astype(np.intp))

    return nodes.derived.get((Cost, column.key, size), find)


def _weigh(counts: NDArray[np.int64], size: int, max_skew: int) -> NDArray[np.float64]:
    """The amounts of so many pods each, in a topology of so many domains."""
    # The more domains, the more a pod in one of them weighs.
    amounts: NDArray[np.float64] = np.multiply(counts, math.log(size + 2), dtype=np.float64)
    amounts += max_skew - 1
    amounts[-1] = 0.0
    return amounts


@lru_cache(_MOST_TABLES)
def _weigh_up_to(most: int, size: int, max_skew: int) -> NDArray[np.float64]:
    """The same of every number of pods below the given one, which has the last place."""
    return freeze(_weigh(np.arange(most + 1), size, max_skew))


def _count_domains(column: LabelColumn, nodes: Nodes, feasible: NDArray[np.intp]) -> int:
    """The domains of the feasible rows. A node without the key counts as one more domain."""
    if len(feasible) == len(nodes):
        return len(column.vocabulary.in_use()) + (column.filled < len(nodes))
    seen = np.zeros(len(column.vocabulary) + 1, np.bool_)
    seen[column.codes[feasible]] = True
    return int(np.count_nonzero(seen))
