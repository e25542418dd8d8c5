"""NodeAffinity: pods choose nodes by label and name, strictly or as a preference."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Mask, RowFacts, Rows, Scope, View
from moorage.documents.errors import child, item
from moorage.framework.advice import Advice, Advise, group_by_failures, name_nodes
from moorage.framework.edits import (
    DropNodeRequirement,
    DropNodeSelector,
    Edit,
    SetNodeSelector,
)
from moorage.framework.plugin import (
    Filter,
    Narrowed,
    PreFilter,
    PreScore,
    Reduction,
    Rescore,
    Score,
    Scores,
    Sign,
    normalize_scores,
    rescore_row,
)
from moorage.framework.status import Code, PluginError, Reason, Rejected, unresolvable
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Topics, Wakeup, on
from moorage.objects.daemons import is_daemonset_pod
from moorage.objects.meta import Wire
from moorage.objects.node import Node
from moorage.objects.node_selector import (
    Malformed,
    NodeAffinityRules,
    NodeSelectorTerm,
    NodeTerm,
    Preferences,
    compile_preferences,
    compile_term,
    meets_any,
)
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from moorage.objects.selector import LabelMark, equality, marks_of

_ENFORCED = Reason("node(s) didn't match scheduler-enforced node affinity", Code.UNRESOLVABLE)
_CHOSEN = Reason("node(s) didn't match Pod's node affinity/selector", Code.UNRESOLVABLE)

Terms = tuple[NodeTerm | Malformed | None, ...]


class NodeAffinityArgs(Wire, frozen=True):
    """Node affinity that every pod of the profile gets on top of its own."""

    added_affinity: NodeAffinityRules | None = None

    @property
    def required(self) -> Terms | None:
        rule = self.added_affinity and self.added_affinity.required
        return tuple(compile_term(each) for each in rule.node_selector_terms) if rule else None

    @property
    def preferred(self) -> Preferences | Malformed:
        return compile_preferences(self.added_affinity.preferred if self.added_affinity else ())

    def problems(self) -> Iterator[tuple[str, str]]:
        for at, term in enumerate(self.required or ()):
            if isinstance(term, Malformed):
                yield from _locate(child(_REQUIRED, item("nodeSelectorTerms", at)), term)
        if isinstance(self.preferred, Malformed):
            yield from _locate(_PREFERRED, self.preferred)


_REQUIRED = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"


def _locate(path: str, malformed: Malformed) -> Iterator[tuple[str, str]]:
    for problem in malformed.problems:
        where, _, message = problem.partition(": ")
        yield child(path, where), message


class NodeAffinity(
    PreFilter[PodSpec],
    Filter[PodSpec],
    PreScore[Preferences],
    Score[Preferences],
    Sign,
    Advise[PodSpec],
):
    """Matches node selectors and node affinity, the profile's own first."""

    name = "NodeAffinity"
    Args = NodeAffinityArgs
    reads = Change.LABELS | Change.MEMBERSHIP
    scope = Scope.ROW
    reduces = Reduction.LARGEST

    def __init__(self, args: NodeAffinityArgs | None = None) -> None:
        args = args or NodeAffinityArgs()
        self._added = args.required
        self._added_preferences = _usable(args.preferred)

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        spec = pod.spec
        preferences = spec.node_preferences
        return (
            None if spec.node_selector is None else frozenset(spec.node_selector.items()),
            None if spec.node_terms is None else frozenset(spec.node_terms),
            spec.named_nodes,
            frozenset(preferences) if isinstance(preferences, tuple) else preferences,
        )

    def pre_filter(self, pod: Pod, nodes: View) -> PodSpec | Narrowed[PodSpec] | Rejected | None:
        spec = pod.spec
        if spec.node_terms is None and spec.node_selector is None and self._added is None:
            return None
        if spec.named_nodes is None:
            return spec
        if not spec.named_nodes:
            return unresolvable("pod affinity terms conflict")
        return Narrowed(spec, spec.named_nodes)

    def filter(self, prepared: PodSpec, nodes: View, rows: Rows) -> Verdict:
        unchosen = ~_find_chosen(prepared, nodes, rows)
        if self._added is None:
            return Verdict.rejecting(unchosen, _CHOSEN)
        allowed = nodes.satisfying_any(self._added, rows)
        return Verdict((_ENFORCED, _CHOSEN), np.stack((~allowed, unchosen & allowed)))

    def recheck(self, prepared: PodSpec, nodes: View, row: RowFacts) -> Rescore:
        suits = self._suits(prepared, nodes.node(row.number))
        return Rescore.UPDATED if suits else Rescore.INFEASIBLE

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> Preferences | None:
        preferences = pod.spec.node_preferences
        if preferences is None and not self._added_preferences:
            return None
        return self._added_preferences + _usable(preferences or ())

    def score(self, prepared: Preferences, nodes: View, rows: Rows) -> Scores:
        scores: Scores = np.zeros(nodes.count(rows), np.int64)
        for term, weight in prepared:
            scores += nodes.satisfying_any((term,), rows) * weight
        return scores

    def rescore(self, prepared: Preferences, nodes: View, row: RowFacts, scores: Scores) -> Rescore:
        return rescore_row(self, prepared, nodes, row, scores)

    def normalize(self, prepared: Preferences, scores: Scores) -> Scores:
        return normalize_scores(scores)

    def advise(
        self, pod: Pod, prepared: PodSpec | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        """Yields the expressions of the node selector and of required affinity that fail."""
        yield from _suggest_labels(pod, nodes)
        rule = pod.spec.node_affinity.required
        selected = _failing_selector(pod, nodes, rows)
        routes: list[Mapping[Edit, Mask]] = [selected]
        if rule is not None:
            # Terms are alternatives, so each is a way of its own to meet the rule.
            routes = [
                {**selected, **_failing_term(pod, nodes, rows, at, term)}
                for at, term in enumerate(rule.node_selector_terms)
            ]
        for route in routes:
            for edits, there in group_by_failures(route, rows):
                names = ", ".join(_name_requirement(edit) for edit in edits)
                problem = f"{name_nodes(there, nodes)} did not match {names}"
                yield Advice(problem, edits, kind="node-labels")

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_LABEL,
                self._after_node_change,
                alike=True,
                topics=Topics(_node_marks, _wanted_marks),
            ),
        )

    def _after_node_change(self, pod: Pod, old: Node | None, new: Node) -> bool:
        return self._suits(pod.spec, new) and (old is None or not self._suits(pod.spec, old))

    def _suits(self, spec: PodSpec, node: Node) -> bool:
        return meets_any(self._added, node.name, node.labels) and spec.chooses(
            node.name, node.labels
        )


def _node_marks(old: Node | None, new: Node) -> Iterator[LabelMark]:
    return marks_of(new.labels)


def _wanted_marks(pod: Pod) -> tuple[LabelMark, ...] | None:
    """Marks of which every node that the pod selects bears one."""
    selected = pod.spec.node_selector
    return equality(selected).marks if selected else None


def _find_chosen(spec: PodSpec, nodes: View, rows: Rows) -> Mask:
    chosen = nodes.selected(spec.node_selector or {}, rows)
    if spec.node_terms is not None:
        chosen &= nodes.satisfying_any(spec.node_terms, rows)
    return chosen


def _usable(preferences: Preferences | Malformed) -> Preferences:
    if isinstance(preferences, Malformed):
        raise PluginError(str(preferences))
    return preferences


def _name_requirement(edit: Edit) -> str:
    return edit.text.removeprefix("it did not select ").removeprefix("it did not require ")


def _failing_selector(pod: Pod, nodes: View, rows: NDArray[np.intp]) -> dict[Edit, Mask]:
    return {
        DropNodeSelector(key, value): ~nodes.selected({key: value}, rows)
        for key, value in (pod.spec.node_selector or {}).items()
    }


def _suggest_labels(pod: Pod, nodes: View) -> Iterator[Advice]:
    """Yields labels that nodes have, for those of the node selector that no node has."""
    for key, value in (pod.spec.node_selector or {}).items():
        if nodes.selected({key: value}, nodes.rows).any():
            continue
        similar = {
            f"{has_key}={has_value}": (has_key, has_value)
            for row in nodes.rows.tolist()
            for has_key, has_value in nodes.node(row).labels.items()
            if has_key == key or has_value == value
        }
        for likely in get_close_matches(f"{key}={value}", similar, n=1, cutoff=_SIMILAR):
            problem = f"no node has the label {key}={value}"
            yield Advice(problem, (SetNodeSelector(key, *similar[likely]),), kind="node-labels")


# A slip of the pen. Values such as ssd and hdd differ more.
_SIMILAR = 0.8


def _failing_term(
    pod: Pod, nodes: View, rows: NDArray[np.intp], at: int, term: NodeSelectorTerm
) -> dict[Edit, Mask]:
    failing: dict[Edit, Mask] = {}
    for each in term.match_expressions or ():
        alone = NodeSelectorTerm(match_expressions=(each,))
        failing[DropNodeRequirement(at, each)] = _fails(nodes, rows, alone)
    # A pod of a DaemonSet is made for one node.
    for each in term.match_fields or () if not is_daemonset_pod(pod) else ():
        alone = NodeSelectorTerm(match_fields=(each,))
        failing[DropNodeRequirement(at, each, is_field=True)] = _fails(nodes, rows, alone)
    return failing


def _fails(nodes: View, rows: NDArray[np.intp], alone: NodeSelectorTerm) -> Mask:
    compiled = compile_term(alone)
    if isinstance(compiled, NodeTerm):
        return ~nodes.satisfying_any((compiled,), rows)
    return ~nodes.nothing(rows)
