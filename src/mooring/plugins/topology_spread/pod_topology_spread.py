"""PodTopologySpread: pods that belong together are spread evenly over domains."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Change, Mask, Nodes, Rows, Scope
from mooring.cluster.changes import leave_out
from mooring.cluster.labels import ABSENT, LabelColumn
from mooring.framework.advice import Advice, Advise
from mooring.framework.plugin import (
    MAX_SCORE,
    UNSIGNABLE,
    Filter,
    PreFilter,
    PreScore,
    Score,
    Scores,
    Sign,
    SignedParts,
)
from mooring.framework.status import Code, PluginError, Reason
from mooring.framework.verdict import Verdict
from mooring.framework.wakeups import Action, Resource, Wakeup, on
from mooring.objects.meta import Wire
from mooring.objects.node import HOSTNAME
from mooring.objects.placement_rules import TopologySpreadConstraint
from mooring.objects.pod import Pod
from mooring.objects.selector import SelectorError

from .spread_advice import advise_on_spread
from .spread_constraints import (
    HARD,
    SOFT,
    SYSTEM_DEFAULTS,
    Constraint,
    Inclusion,
    WhenUnsatisfiable,
    default_constraints,
    own_constraints,
    pods_per_domain,
)
from .spread_counts import Spreads, spread_of
from .spread_hints import POD_TOPICS, node_helps, pod_helps

_SKEWED = Reason("node(s) didn't match pod topology spread constraints")
_NO_LABEL = Reason(f"{_SKEWED.text} (missing required label)", Code.UNRESOLVABLE)

# Looked up once, because that takes long for an enum.
_NOTHING = Change.NONE

# The raw score of a node that is not compared with the others; others are never below 0.
_IGNORED = -1


class PodTopologySpreadArgs(Wire, frozen=True):
    """The constraints of pods that have none of their own."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.defaulting_type == "System" and self.default_constraints:
            yield "defaultingType", 'must be "List" when there are defaultConstraints'
        seen: set[tuple[str, str]] = set()
        for at, constraint in enumerate(self.default_constraints):
            path = f"defaultConstraints[{at}]"
            yield from ((f"{path}.{field}", wrong) for field, wrong in _wrong_in(constraint))
            identity = constraint.topology_key, constraint.when_unsatisfiable
            if identity in seen:
                yield path, f"repeats {', '.join(identity)}"
            seen.add(identity)


def _wrong_in(constraint: TopologySpreadConstraint) -> Iterator[tuple[str, str]]:
    if constraint.max_skew <= 0:
        yield "maxSkew", f"must be greater than 0, got {constraint.max_skew}"
    if not constraint.topology_key:
        yield "topologyKey", "is required"
    if constraint.label_selector is not None:
        yield "labelSelector", "must not be given, it is deduced for each pod"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a soft constraint adds to a node's raw score: per code, or per row without a column."""

    column: LabelColumn | None
    amounts: NDArray[np.float64]

    def on(self, rows: Rows) -> NDArray[np.float64]:
        return self.amounts[rows if self.column is None else self.column.codes[rows]]

    def round_on(self, rows: Rows) -> Scores:
        """The same in whole numbers, found per code: there are fewer of these than rows."""
        if self.column is None:
            return _round(self.amounts[rows])
        return _round(self.amounts)[self.column.codes[rows]]


@dataclass(frozen=True, slots=True)
class Costs:
    """All soft constraints of a pod, and the rows that are compared; None is every node."""

    each: tuple[Cost, ...]
    compared: Mask | None


class PodTopologySpread(
    PreFilter[Spreads], Filter[Spreads], PreScore[Costs], Score[Costs], Sign, Advise[Spreads]
):
    """Keeps the numbers of like pods in the domains of a topology key close to each other."""

    name: ClassVar[str] = "PodTopologySpread"
    Args = PodTopologySpreadArgs
    reads = Change.PODS | Change.LABELS | Change.TAINTS | Change.SERVICES | Change.MEMBERSHIP
    scope = Scope.DOMAIN
    signs = SignedParts(siblings=True)

    def __init__(self, args: PodTopologySpreadArgs, *, compares: bool = False) -> None:
        self._by_system = args.defaulting_type == "System"
        defaults = SYSTEM_DEFAULTS if self._by_system else args.default_constraints
        self._defaults = {
            action: tuple(each for each in defaults if each.when_unsatisfiable == action)
            for action in (HARD, SOFT)
        }
        self._compares = compares
        # What services and controllers say of a pod is signed, so that a change of them matters
        # to pods of another signature only.
        self._watches = leave_out(self.reads, Change.SERVICES)

    @classmethod
    def create(cls, args: Any, gates: Mapping[str, bool]) -> Self:
        return cls(args, compares=gates.get("TaintTolerationComparisonOperators", False))

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        spec = pod.spec
        if not spec.topology_spread_constraints and not any(self._defaults.values()):
            return None
        try:
            own = own_constraints(pod, HARD), own_constraints(pod, SOFT)
        except SelectorError:
            return UNSIGNABLE
        siblings = None if any(own) else nodes.workloads.siblings(pod)
        if not any(own) and siblings is None:
            return None
        return (
            pod.namespace,
            nodes.labels_that_matter(pod),
            own,
            siblings,
            tuple(sorted((spec.node_selector or {}).items())),
            spec.node_terms,
            spec.tolerations,
        )

    def watch(self, pod: Pod, nodes: Nodes) -> Change:
        if pod.spec.topology_spread_constraints or nodes.workloads.siblings(pod) is not None:
            return self._watches
        return _NOTHING

    def advise(
        self, pod: Pod, prepared: Spreads | None, nodes: Nodes, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        each = () if prepared is None else prepared.each
        return advise_on_spread(pod, each, nodes, rows)

    def wakeups(self) -> tuple[Wakeup, ...]:
        of_pod = Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE
        of_node = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return (
            on(Resource.POD, of_pod, pod_helps, alike=True, topics=POD_TOPICS),
            on(Resource.NODE, of_node, partial(node_helps, self._defaults[HARD]), alike=True),
        )

    # Hard constraints

    def pre_filter(self, pod: Pod, nodes: Nodes) -> Spreads | None:
        constraints = self._constraints(pod, nodes, HARD, "get constraints from pod")
        if not constraints:
            return None
        keys = (each.topology_key for each in constraints)
        inclusion = Inclusion(pod, nodes, keys, compares=self._compares)
        return Spreads(
            pod.namespace,
            tuple(spread_of(each, pod, nodes, inclusion.of(each)) for each in constraints),
        )

    def add_pod(self, prepared: Spreads, nodes: Nodes, pod: Pod, row: int) -> Spreads:
        return prepared.moved(pod, row, 1)

    def remove_pod(self, prepared: Spreads, nodes: Nodes, pod: Pod, row: int) -> Spreads:
        return prepared.moved(pod, row, -1)

    def filter(self, prepared: Spreads, nodes: Nodes, rows: Rows) -> Verdict:
        first, *others = prepared.each
        failed = np.empty((2, nodes.count(rows)), np.bool_)
        lacking, skewed = failed
        codes = first.column.codes[rows]
        np.equal(codes, ABSENT, out=lacking)
        skewed[:] = first.skewed()[codes]
        for spread in others:
            codes = spread.column.codes[rows]
            # Users read of the first constraint that fails.
            lacking |= (codes == ABSENT) & ~skewed
            skewed |= spread.skewed()[codes] & ~lacking
        return Verdict((_NO_LABEL, _SKEWED), failed)

    # Soft constraints

    def pre_score(self, pod: Pod, nodes: Nodes, rows: NDArray[np.intp]) -> Costs | None:
        constraints = self._constraints(pod, nodes, SOFT, "calculating preScoreState")
        if not constraints or not len(nodes):
            return None
        # Nodes without a zone are still spread over by their name, if nobody asked for more.
        lenient = self._by_system and not pod.spec.topology_spread_constraints
        keys = () if lenient else (each.topology_key for each in constraints)
        inclusion = Inclusion(pod, nodes, keys, compares=self._compares)
        compared = inclusion.complete
        feasible = rows if compared is None else rows[compared[rows]]
        costs = (
            _cost_by_name(each, pod.namespace, nodes, feasible)
            if each.topology_key == HOSTNAME
            else _cost(each, pod, nodes, feasible, inclusion.of(each).rows)
            for each in constraints
        )
        return Costs(tuple(costs), compared)

    def score(self, prepared: Costs, nodes: Nodes, rows: Rows) -> Scores:
        first, *others = prepared.each
        if others:
            costs = first.on(rows)
            for each in others:
                costs = costs + each.on(rows)
            scores = _round(costs)
        else:
            scores = first.round_on(rows)
        if prepared.compared is not None:
            scores[~prepared.compared[rows]] = _IGNORED
        return scores

    def normalize(self, prepared: Costs, scores: Scores) -> Scores:
        highest = int(scores.max(initial=0))
        if prepared.compared is None:
            return _spread_out(scores, int(scores.min(initial=highest)), highest)
        ignored = scores == _IGNORED
        normal = _spread_out(
            scores, int(np.where(ignored, highest, scores).min(initial=highest)), highest
        )
        normal[ignored] = 0
        return normal

    # Which constraints a pod has

    def _constraints(
        self, pod: Pod, nodes: Nodes, action: WhenUnsatisfiable, doing: str
    ) -> tuple[Constraint, ...]:
        if pod.spec.topology_spread_constraints:
            try:
                return own_constraints(pod, action)
            except SelectorError as error:
                kind = "hard" if action == HARD else "soft"
                what = f"{doing}: obtaining pod's {kind} topology spread constraints"
                raise PluginError(f"{what}: {error}") from error
        defaults = self._defaults[action]
        siblings = nodes.workloads.siblings(pod) if defaults else None
        return default_constraints(defaults, siblings) if siblings else ()


def _cost_by_name(
    constraint: Constraint, namespace: str, nodes: Nodes, feasible: NDArray[np.intp]
) -> Cost:
    """For the host name: the pods of the node itself count, whichever nodes are included."""
    match, column = constraint.counted(namespace), nodes.label(HOSTNAME)
    rows = nodes.everything
    amounts: NDArray[np.float64]
    if match is None:
        amounts = np.zeros(nodes.count(rows), np.float64)
    else:
        counts = nodes.matching_pods(match)[rows]
        amounts = np.multiply(counts, _weight(len(feasible)), dtype=np.float64)
    amounts += constraint.max_skew - 1
    if column.filled < len(nodes):
        amounts[column.codes[rows] == ABSENT] = 0.0
    return Cost(None, amounts)


def _cost(
    constraint: Constraint,
    pod: Pod,
    nodes: Nodes,
    feasible: NDArray[np.intp],
    included: Mask | None,
) -> Cost:
    column = nodes.label(constraint.topology_key)
    counts = pods_per_domain(constraint, pod.namespace, nodes, included)
    weight = _weight(_count_domains(column, nodes, feasible))
    amounts: NDArray[np.float64] = np.multiply(counts, weight, dtype=np.float64)
    amounts += constraint.max_skew - 1
    amounts[-1] = 0.0
    return Cost(column, amounts)


def _count_domains(column: LabelColumn, nodes: Nodes, feasible: NDArray[np.intp]) -> int:
    """The domains of the feasible rows. A node without the key counts as one more domain."""
    if len(feasible) == len(nodes):
        return len(column.vocabulary.in_use()) + (column.filled < len(nodes))
    seen = np.zeros(len(column.vocabulary) + 1, np.bool_)
    seen[column.codes[feasible]] = True
    return int(np.count_nonzero(seen))


def _round(costs: NDArray[np.float64]) -> Scores:
    """Halves are rounded up, never to even."""
    whole = np.floor(costs)
    whole += costs - whole >= 0.5
    rounded: Scores = whole.astype(np.int64)
    return rounded


def _spread_out(costs: Scores, lowest: int, highest: int) -> Scores:
    """The lowest cost scores highest."""
    if highest == 0:
        return np.full_like(costs, MAX_SCORE)
    scores: Scores = (highest + lowest) - costs
    scores *= MAX_SCORE
    scores //= highest
    return scores


def _weight(size: int) -> float:
    """The weight of a topology: the more domains, the more a pod in one of them weighs."""
    return math.log(size + 2)
