"""Advice about what nodes are: taints and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from mooring.cluster import Mask
from mooring.framework.advice import MOST_GROUPS, Advice, failing_sets, on_nodes
from mooring.framework.edits import (
    TROUBLES,
    AddToleration,
    AnyEdit,
    DropNodeRequirement,
    DropNodeSelector,
    RecoverNodes,
    Uncordon,
)
from mooring.objects.node_selector import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeTerm,
    compile_term,
)
from mooring.objects.taint import Taint
from mooring.plugins.node_unschedulable import CORDONED
from mooring.plugins.taint_toleration import TaintToleration

from .case import Case, RowNumbers


def advise_on_taints(case: Case, rows: RowNumbers) -> Iterator[Advice]:
    """Taints that repel the pod: tolerate them."""
    plugin = case.profile.plugins["TaintToleration"]
    assert isinstance(plugin, TaintToleration)
    codes = case.nodes.taint_sets[rows]
    lists = {code: taints for taints, code in case.nodes.taints.in_use().items()}
    groups: dict[tuple[Taint, ...], list[RowNumbers]] = {}
    for code in np.unique(codes).tolist():
        repelling = plugin.repelling(case.pod, lists[code])
        groups.setdefault(tuple(dict.fromkeys(repelling)), []).append(rows[codes == code])
    merged = {taints: np.concatenate(parts) for taints, parts in groups.items() if taints}
    for taints, there in sorted(merged.items(), key=lambda each: -len(each[1]))[:MOST_GROUPS]:
        named = ", ".join(_written(taint) for taint in taints)
        yield Advice(
            f"{on_nodes(there, case.actual)} had untolerated {named}",
            tuple(_accepting(taint, there, case) for taint in taints),
            kind="taint",
        )


def _accepting(taint: Taint, rows: RowNumbers, case: Case) -> AnyEdit:
    if taint.key == CORDONED.key and taint.effect == CORDONED.effect:
        return Uncordon(tuple(case.actual.names(rows.tolist())))
    if taint.key in TROUBLES:
        names = tuple(case.actual.names(rows.tolist()))
        return RecoverNodes(taint.key, taint.value, taint.effect, names)
    return AddToleration.of(taint)


def _written(taint: Taint) -> str:
    return f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"


def advise_on_labels(case: Case, rows: RowNumbers) -> Iterator[Advice]:
    """Node selector and required affinity: which expressions fail where."""
    spec = case.pod.spec
    rule = spec.node_affinity.required
    selected = _failing_selector(case, rows)
    routes: list[Mapping[AnyEdit, Mask]] = [selected]
    if rule is not None:
        # Terms are alternatives, so each is a way of its own to meet the rule.
        routes = [
            {**selected, **_failing_term(case, rows, at, term)}
            for at, term in enumerate(rule.node_selector_terms)
        ]
    for route in routes:
        for edits, there in failing_sets(route, rows):
            named = ", ".join(_requirement(edit) for edit in edits)
            yield Advice(
                f"{on_nodes(there, case.actual)} did not match {named}", edits, kind="node-labels"
            )


def _requirement(edit: AnyEdit) -> str:
    return edit.told.removeprefix("it did not select ").removeprefix("it did not require ")


def _failing_selector(case: Case, rows: RowNumbers) -> dict[AnyEdit, Mask]:
    wanted = case.pod.spec.node_selector or {}
    return {
        DropNodeSelector(key, value): ~case.nodes.selected({key: value}, rows)
        for key, value in wanted.items()
    }


def _failing_term(
    case: Case, rows: RowNumbers, at: int, term: NodeSelectorTerm
) -> dict[AnyEdit, Mask]:
    failing: dict[AnyEdit, Mask] = {}
    for written in term.match_expressions or ():
        alone = NodeSelectorTerm(match_expressions=(written,))
        failing[_drop(at, written, is_field=False)] = _fails(case, rows, alone)
    for written in term.match_fields or ():
        alone = NodeSelectorTerm(match_fields=(written,))
        failing[_drop(at, written, is_field=True)] = _fails(case, rows, alone)
    return failing


def _drop(at: int, written: NodeSelectorRequirement, *, is_field: bool) -> DropNodeRequirement:
    return DropNodeRequirement(at, written, is_field)


def _fails(case: Case, rows: RowNumbers, alone: NodeSelectorTerm) -> Mask:
    compiled = compile_term(alone)
    if isinstance(compiled, NodeTerm):
        return ~case.nodes.satisfying(compiled, rows)
    return ~case.nodes.nothing(rows)
