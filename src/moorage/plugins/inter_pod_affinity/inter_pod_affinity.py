"""InterPodAffinity: pods that want to be near other pods, or away from them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Mask, PodMatch, Rows, Scope, View
from moorage.cluster.changes import leave_out
from moorage.cluster.labels import ABSENT
from moorage.cluster.standing_terms import TermKind
from moorage.cluster.tally import DomainCounts
from moorage.config import FeatureGates
from moorage.framework.advice import Advice, Advise
from moorage.framework.plugin import (
    MAX_SCORE,
    Filter,
    PreFilter,
    PreScore,
    Reduction,
    Score,
    Scores,
    Sign,
)
from moorage.framework.status import Code, PluginError, Reason, Rejected, unresolvable
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Wakeup, on
from moorage.objects.meta import Wire
from moorage.objects.node import Node
from moorage.objects.placement_rules import AffinityTerm
from moorage.objects.pod import Pod
from moorage.objects.selector import Labels

from .affinity_advice import advise_on_affinity
from .affinity_hints import POD_TOPICS, node_helps, pod_helps
from .pod_presence import Presence, TermMatcher, add_up, presence_of

# Looked up once, because that takes long for an enum.
_AFFINITY, _ANTI, _PREFERRED, _PREFERRED_ANTI = TermKind

_NO_AFFINITY = Reason("node(s) didn't match pod affinity rules", Code.UNRESOLVABLE)
_ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules")
_REPELLED = Reason("node(s) didn't satisfy existing pods anti-affinity rules")

_TO_DECIDE = Change.PODS | Change.TERMS | Change.LABELS | Change.NAMESPACES | Change.MEMBERSHIP


class InterPodAffinityArgs(Wire, frozen=True):
    """How much the terms of running pods count while nodes are scored."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def problems(self) -> Iterator[tuple[str, str]]:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= MAX_SCORE:
            yield "hardPodAffinityWeight", f"must be between 0 and {MAX_SCORE}, got {weight}"


class AffinityRules(NamedTuple):
    """Where the pods of the required terms are."""

    pod: Pod
    namespace_labels: Labels
    #: The match of all affinity terms at once; None if there are none, or no pod can match.
    wanted: PodMatch | None
    #: Those pods, per topology key of the affinity terms.
    near: tuple[Presence, ...]
    #: Who matches an anti-affinity term, and where they are.
    unwanted: tuple[tuple[PodMatch, Presence], ...]
    #: Running pods whose anti-affinity terms match the pod, by topology key.
    repelling: Mapping[str, Presence]


class Pull(NamedTuple):
    """The sum of all preferences, per topology key."""

    sums: tuple[Presence, ...]


class InterPodAffinity(
    PreFilter[AffinityRules],
    Filter[AffinityRules],
    PreScore[Pull],
    Score[Pull],
    Sign,
    Advise[AffinityRules],
):
    """Keeps pods near to or away from the domains of other pods, as their terms say."""

    name: ClassVar[str] = "InterPodAffinity"
    Args = InterPodAffinityArgs
    # Nominations matter to hints only.
    reads = _TO_DECIDE | Change.NOMINATED
    scope = Scope.DOMAIN
    reduces = Reduction.EVERYTHING

    def __init__(self, args: InterPodAffinityArgs, matcher: TermMatcher | None = None) -> None:
        self._args = args
        self._matcher = matcher or TermMatcher()
        # To a pod without terms of its own, only pods that have some matter.
        self._watches_without_terms = leave_out(_TO_DECIDE, Change.PODS)
        self._nodes: View | None = None

    def see_cluster(self, nodes: View) -> None:
        self._nodes = nodes

    @classmethod
    def create(cls, args: InterPodAffinityArgs, gates: FeatureGates) -> Self:
        return cls(args, TermMatcher(gates.version.widens_namespace_selectors))

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return pod.namespace, nodes.labels_that_matter(pod), pod.terms

    def watch(self, pod: Pod, nodes: View) -> Change:
        return _TO_DECIDE if pod.terms else self._watches_without_terms

    def advise(
        self, pod: Pod, prepared: AffinityRules | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        return advise_on_affinity(pod, nodes, rows, self._matcher)

    def wakeups(self) -> tuple[Wakeup, ...]:
        pod_actions = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        node_actions = Action.ADD | Action.UPDATE_NODE_LABEL
        return (
            on(Resource.POD, pod_actions, pod_helps, alike=True, topics=POD_TOPICS),
            on(Resource.NODE, node_actions, self._node_helps, alike=True),
        )

    def _node_helps(self, waiting: Pod, old: Node | None, new: Node) -> bool:
        return node_helps(self._nodes, waiting, old, new)

    # Required terms

    def pre_filter(self, pod: Pod, nodes: View) -> AffinityRules | Rejected | None:
        terms = pod.terms
        if terms.problem:
            return unresolvable(f"parsing pod: {terms.problem}")
        standing = nodes.standing(_ANTI, pod)
        repelling = add_up((term.domains, 1) for term in standing)
        if not (repelling or terms.affinity or terms.anti_affinity):
            return None
        wanted = self._matcher.match(terms.affinity, nodes.workloads)
        keys = dict.fromkeys(term.topology_key for term in terms.affinity)
        return AffinityRules(
            pod,
            nodes.workloads.namespace_labels(pod.namespace),
            wanted,
            tuple(presence_of(wanted, key, nodes) for key in keys),
            tuple(self._find_unwanted(terms.anti_affinity, nodes)),
            repelling,
        )

    def _find_unwanted(
        self, terms: Iterable[AffinityTerm], nodes: View
    ) -> Iterator[tuple[PodMatch, Presence]]:
        for term in terms:
            match = self._matcher.match((term,), nodes.workloads)
            if match is not None:
                yield match, presence_of(match, term.topology_key, nodes)

    def add_pod(self, prepared: AffinityRules, nodes: View, pod: Pod, row: int) -> AffinityRules:
        return _move(prepared, nodes, pod, row, 1)

    def remove_pod(self, prepared: AffinityRules, nodes: View, pod: Pod, row: int) -> AffinityRules:
        return _move(prepared, nodes, pod, row, -1)

    def filter(self, prepared: AffinityRules, nodes: View, rows: Rows) -> Verdict:
        found = list(_find_broken(prepared, nodes, rows))
        if not found:
            return Verdict.accepting(nodes.count(rows))
        if len(found) == 1:
            reason, broken = found[0]
            return Verdict.rejecting(broken, reason)
        failed = np.array([broken for _, broken in found])
        for at in range(1, len(found)):
            # Users read of the first kind of rule that is broken.
            failed[at] &= ~np.logical_or.reduce(failed[:at], axis=0)
        return Verdict([reason for reason, _ in found], failed)

    # Preferences

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> Pull | None:
        terms = pod.terms
        if terms.problem:
            raise PluginError(f"failed to parse pod: {terms.problem}")
        prefers = terms.preferred or terms.preferred_anti
        if self._args.ignore_preferred_terms_of_existing_pods and not prefers:
            return None
        sums = add_up(self._preferences(pod, nodes))
        # What cancels out to 0 still counts: the scores are then equal, not absent.
        return Pull(tuple(sums.values())) if sums else None

    def score(self, prepared: Pull, nodes: View, rows: Rows) -> Scores:
        first, *others = prepared.sums
        scores = first.on(rows)
        for each in others:
            scores += each.on(rows)
        return scores

    def normalize(self, prepared: Pull, scores: Scores) -> Scores:
        if not len(scores):
            return scores
        lowest = scores.min()
        span = scores.max() - lowest
        if span == 0:
            return np.zeros(len(scores), np.int64)
        # Divided before it is multiplied: the truncated result depends on it.
        shares = (scores - lowest) / span
        shares *= MAX_SCORE
        return shares.astype(np.int64)

    def _preferences(self, pod: Pod, nodes: View) -> Iterator[tuple[DomainCounts, int]]:
        """The pods that the pod likes or that like it, per domain, and how much each weighs."""
        for term, weight in pod.terms.preferred:
            yield from self._weigh(term, weight, nodes)
        for term, weight in pod.terms.preferred_anti:
            yield from self._weigh(term, -weight, nodes)
        hard_weight = self._args.hard_pod_affinity_weight
        if hard_weight > 0:
            for standing in nodes.standing(_AFFINITY, pod):
                yield standing.domains, hard_weight
        for standing in nodes.standing(_PREFERRED, pod):
            yield standing.domains, standing.weight
        for standing in nodes.standing(_PREFERRED_ANTI, pod):
            yield standing.domains, -standing.weight

    def _weigh(
        self, term: AffinityTerm, weight: int, nodes: View
    ) -> Iterator[tuple[DomainCounts, int]]:
        match = self._matcher.match((term,), nodes.workloads)
        if match is not None:
            yield nodes.tally(match).in_domains(nodes.label(term.topology_key)), weight


def _find_broken(rules: AffinityRules, nodes: View, rows: Rows) -> Iterator[tuple[Reason, Mask]]:
    """Yields where each kind of rule is broken, in the order in which users read of them."""
    if rules.near:
        yield _NO_AFFINITY, _too_far(rules, nodes, rows)
    if rules.unwanted:
        yield _ANTI_AFFINITY, _any(nodes, rows, (each for _, each in rules.unwanted))
    if rules.repelling:
        yield _REPELLED, _any(nodes, rows, rules.repelling.values())


def _too_far(rules: AffinityRules, nodes: View, rows: Rows) -> Mask:
    first, *others = rules.near
    far = ~first.anywhere(rows)
    for presence in others:
        far |= ~presence.anywhere(rows)
    if np.count_nonzero(far) and _is_first(rules):
        far[:] = False
        for presence in rules.near:
            far |= presence.column.codes[rows] == ABSENT
    return far


def _is_first(rules: AffinityRules) -> bool:
    """Whether the pod is what its affinity terms look for, and no other such pod is anywhere."""
    return (
        rules.wanted is not None
        and rules.wanted.matches(rules.pod)
        and not any(np.count_nonzero(presence.counts) for presence in rules.near)
    )


def _any(nodes: View, rows: Rows, presences: Iterable[Presence]) -> Mask:
    found: Mask | None = None
    for presence in presences:
        here = presence.anywhere(rows)
        found = here if found is None else found | here
    return nodes.nothing(rows) if found is None else found


def _move(rules: AffinityRules, nodes: View, pod: Pod, row: int, amount: int) -> AffinityRules:
    """Returns the rules with one pod more or fewer; the same value if no rule concerns the pod."""
    near, unwanted = rules.near, rules.unwanted
    if rules.wanted is not None and rules.wanted.matches(pod):
        near = tuple(presence.moved(row, amount) for presence in near)
    if any(match.matches(pod) for match, _ in unwanted):
        unwanted = tuple(
            (match, presence.moved(row, amount) if match.matches(pod) else presence)
            for match, presence in unwanted
        )
    repelling = _repelling_moved(rules, nodes, pod, row, amount)
    if near is rules.near and unwanted is rules.unwanted and repelling is rules.repelling:
        return rules
    return rules._replace(near=near, unwanted=unwanted, repelling=repelling)


def _repelling_moved(
    rules: AffinityRules, nodes: View, pod: Pod, row: int, amount: int
) -> Mapping[str, Presence]:
    repelling = rules.repelling
    for term in pod.terms.anti_affinity:
        if term.matches(rules.pod.namespace, rules.pod.labels, rules.namespace_labels):
            key = term.topology_key
            known = repelling.get(key) or presence_of(None, key, nodes)
            repelling = {**repelling, key: known.moved(row, amount)}
    return repelling
