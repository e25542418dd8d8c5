"""PodTopologySpread: spreads pods that belong together evenly over domains."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Rows, Scope, View
from moorage.cluster.changes import leave_out
from moorage.cluster.labels import ABSENT
from moorage.framework.advice import Advice, Advise
from moorage.framework.plugin import (
    MAX_SCORE,
    UNSIGNABLE,
    Filter,
    PreFilter,
    PreScore,
    Reduction,
    Score,
    Scores,
    Sign,
)
from moorage.framework.status import Code, PluginError, Reason
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Wakeup, on
from moorage.objects.meta import Wire
from moorage.objects.placement_rules import TopologySpreadConstraint
from moorage.objects.pod import Pod
from moorage.objects.selector import Selector, SelectorError

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
)
from .spread_costs import IGNORED, Costs, SoftRules
from .spread_counts import Spreads, spread_of
from .spread_hints import POD_TOPICS, node_helps, pod_helps

_SKEWED = Reason("node(s) didn't match pod topology spread constraints")
_NO_LABEL = Reason(f"{_SKEWED.text} (missing required label)", Code.UNRESOLVABLE)

# Looked up once, because that takes long for an enum.
_NOTHING = Change.NONE


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


class PodTopologySpread(
    PreFilter[Spreads], Filter[Spreads], PreScore[Costs], Score[Costs], Sign, Advise[Spreads]
):
    """Keeps the numbers of like pods in the domains of a topology key close to each other."""

    name: ClassVar[str] = "PodTopologySpread"
    Args = PodTopologySpreadArgs
    reads = Change.PODS | Change.LABELS | Change.TAINTS | Change.SERVICES | Change.MEMBERSHIP
    scope = Scope.DOMAIN
    reduces = Reduction.EVERYTHING

    def __init__(self, args: PodTopologySpreadArgs, *, compares: bool = False) -> None:
        self._by_system = args.defaulting_type == "System"
        defaults = SYSTEM_DEFAULTS if self._by_system else args.default_constraints
        self._defaults = {
            action: tuple(each for each in defaults if each.when_unsatisfiable == action)
            for action in (HARD, SOFT)
        }
        self._compares = compares
        # The signature contains the services and the controller of a pod. When these change, so
        # does the signature, and answers for the old one stay right.
        self._watches = leave_out(self.reads, Change.SERVICES)

    @classmethod
    def create(cls, args: Any, gates: Mapping[str, bool]) -> Self:
        return cls(args, compares=gates.get("TaintTolerationComparisonOperators", False))

    def sign(self, pod: Pod, nodes: View) -> Hashable:
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

    def watch(self, pod: Pod, nodes: View) -> Change:
        if pod.spec.topology_spread_constraints or nodes.workloads.siblings(pod) is not None:
            return self._watches
        return _NOTHING

    def advise(
        self, pod: Pod, prepared: Spreads | None, nodes: View, rows: NDArray[np.intp]
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

    def pre_filter(self, pod: Pod, nodes: View) -> Spreads | None:
        constraints = self._constraints(pod, nodes, HARD, "get constraints from pod")
        if not constraints:
            return None
        keys = (each.topology_key for each in constraints)
        inclusion = Inclusion(pod, nodes, keys, compares=self._compares)
        return Spreads(
            pod.namespace,
            tuple(spread_of(each, pod, nodes, inclusion.of(each)) for each in constraints),
        )

    def add_pod(self, prepared: Spreads, nodes: View, pod: Pod, row: int) -> Spreads:
        return prepared.moved(pod, row, 1)

    def remove_pod(self, prepared: Spreads, nodes: View, pod: Pod, row: int) -> Spreads:
        return prepared.moved(pod, row, -1)

    def filter(self, prepared: Spreads, nodes: View, rows: Rows) -> Verdict:
        first, *others = prepared.each
        failed = np.empty((2, nodes.count(rows)), np.bool_)
        lacking, skewed = failed
        codes = first.column.codes[rows]
        np.equal(codes, ABSENT, out=lacking)
        skewed[:] = first.skewed()[codes]
        for spread in others:
            codes = spread.column.codes[rows]
            # The message is about the first constraint that fails.
            lacking |= (codes == ABSENT) & ~skewed
            skewed |= spread.skewed()[codes] & ~lacking
        return Verdict((_NO_LABEL, _SKEWED), failed)

    # Soft constraints

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> Costs | None:
        spec = pod.spec
        has_own = spec.topology_spread_constraints
        decisive = self._soft(pod, nodes) if has_own else self._siblings(pod, nodes, SOFT)
        if not decisive or not len(nodes):
            return None
        # The key contains the id of the template. The value holds the template, so that no other
        # template gets this id.
        key = self, id(spec), pod.namespace, decisive
        _, rules = nodes.derived.get(key, lambda: (spec, self._find_rules(pod, nodes, decisive)))
        return rules.find_costs(nodes, rows)

    def _soft(self, pod: Pod, nodes: View) -> tuple[Constraint, ...]:
        return self._constraints(pod, nodes, SOFT, "calculating preScoreState")

    def _find_rules(
        self, pod: Pod, nodes: View, decisive: tuple[Constraint, ...] | Selector
    ) -> SoftRules:
        if isinstance(decisive, Selector):
            constraints = default_constraints(self._defaults[SOFT], decisive)
        else:
            constraints = decisive
        # By the system's default constraints, nodes without a zone count by their host name.
        lenient = self._by_system and not pod.spec.topology_spread_constraints
        keys = () if lenient else (each.topology_key for each in constraints)
        inclusion = Inclusion(pod, nodes, keys, compares=self._compares)
        return SoftRules.of(constraints, pod, nodes, inclusion)

    def score(self, prepared: Costs, nodes: View, rows: Rows) -> Scores:
        return prepared.on(rows)

    def normalize(self, prepared: Costs, scores: Scores) -> Scores:
        highest = int(scores.max(initial=0))
        if prepared.compared is None:
            return _spread_out(scores, int(scores.min(initial=highest)), highest)
        ignored = scores == IGNORED
        normal = _spread_out(
            scores, int(np.where(ignored, highest, scores).min(initial=highest)), highest
        )
        normal[ignored] = 0
        return normal

    # Which constraints a pod has

    def _constraints(
        self, pod: Pod, nodes: View, action: WhenUnsatisfiable, doing: str
    ) -> tuple[Constraint, ...]:
        if pod.spec.topology_spread_constraints:
            try:
                return own_constraints(pod, action)
            except SelectorError as error:
                kind = "hard" if action == HARD else "soft"
                what = f"{doing}: obtaining pod's {kind} topology spread constraints"
                raise PluginError(f"{what}: {error}") from error
        siblings = self._siblings(pod, nodes, action)
        return default_constraints(self._defaults[action], siblings) if siblings else ()

    def _siblings(self, pod: Pod, nodes: View, action: WhenUnsatisfiable) -> Selector | None:
        """Returns the selector of the default constraints for a pod; None if there are none."""
        return nodes.workloads.siblings(pod) if self._defaults[action] else None


def _spread_out(costs: Scores, lowest: int, highest: int) -> Scores:
    """Returns the scores of costs: the lowest cost scores highest."""
    if highest == 0:
        return np.full_like(costs, MAX_SCORE)
    scores: Scores = (highest + lowest) - costs
    scores *= MAX_SCORE
    scores //= highest
    return scores
