"""Which plugins reject which nodes and why, and the scores of feasible nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, Nodes
from moorage.engine.cycle import Found, find_feasible
from moorage.framework.advice import group_equal_columns
from moorage.framework.attempt import Failed, Filtered, Layer, Scored
from moorage.framework.points import active_filters, filter_rows, score_rows
from moorage.framework.status import PluginError

from .case import NO_ROWS, Case, RowNumbers
from .explanation import Combination, Explanation, NodeAnswer, Rejection, ScoredNode

replace = msgspec.structs.replace

# The best nodes are those that a choice was made among.
_BEST = 5


def list_rejections(filtered: Filtered, nodes: Nodes) -> Iterator[Rejection]:
    """Returns the rejected rows by first plugin and reasons, as the diagnosis counts them."""
    for layer in filtered.layers:
        decided = np.flatnonzero(layer.decided)
        for places in group_equal_columns(layer.verdict.failed[:, decided]):
            yield _rejection(layer, decided[places], filtered.rows, nodes)
    for other in filtered.amended:
        yield from list_rejections(other, nodes)


def _rejection(layer: Layer, places: RowNumbers, rows: RowNumbers, nodes: Nodes) -> Rejection:
    first, verdict = int(places[0]), layer.verdict
    names = tuple(nodes.names(rows[places].tolist()))
    return Rejection(layer.plugin, verdict.code(first), verdict.texts(first), len(names), names)


def merge_rejections(found: Iterator[Rejection]) -> tuple[Rejection, ...]:
    """Returns one rejection per plugin and reasons, the one with the most nodes first."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for each in found:
        groups.setdefault((each.plugin, each.code, each.reasons), []).extend(each.nodes)
    groups_found = [Rejection(*key, len(names), tuple(names)) for key, names in groups.items()]
    return tuple(sorted(groups_found, key=lambda each: -each.count))


@dataclass(frozen=True, slots=True)
class Rejectors:
    """For each filter the rows that it rejects, whether or not others reject them."""

    plugins: tuple[str, ...]
    rows: RowNumbers
    #: bool[plugin, row]
    rejects: NDArray[np.bool_]

    @classmethod
    def of(cls, case: Case) -> Rejectors:
        """Asks every filter about every row."""
        prepared, rows = case.prepared, case.alive
        names: list[str] = []
        masks: list[Mask] = []
        for plugin in active_filters(case.profile, prepared):
            try:
                asked = filter_rows(
                    case.profile, case.pod, prepared, case.nodes, rows, only=(plugin,)
                )
            except PluginError:
                # It breaks where the cycle would not have come to it: then it is not to blame.
                continue
            rejected = ~asked.feasible
            if plugin.name in prepared.narrowed_by and prepared.node_names is not None:
                rejected |= ~_match_names(case, prepared.node_names)
            names.append(plugin.name)
            masks.append(rejected)
        return cls(tuple(names), rows, np.array(masks, np.bool_).reshape(len(names), len(rows)))

    def among(self, rows: RowNumbers) -> Rejectors:
        """Returns the same for some of the rows."""
        kept = np.isin(self.rows, rows)
        return Rejectors(self.plugins, self.rows[kept], self.rejects[:, kept])

    def patterns(self) -> list[tuple[tuple[str, ...], RowNumbers]]:
        """Returns which sets of plugins reject how many rows; the most rows first."""
        found = []
        for places in group_equal_columns(self.rejects):
            column = self.rejects[:, places[0]]
            names = tuple(name for name, no in zip(self.plugins, column, strict=True) if no)
            if names:
                found.append((names, self.rows[places]))
        return sorted(found, key=lambda each: -len(each[1]))

    def alone(self, case: Case, row: RowNumbers) -> Iterator[Rejection]:
        """Returns the reasons of each plugin that rejects one row."""
        here = self.among(row)
        rejecting = {name for name, no in zip(here.plugins, here.rejects[:, 0], strict=True) if no}
        for plugin in active_filters(case.profile, case.prepared):
            if plugin.name in rejecting:
                only = (plugin,)
                asked = filter_rows(case.profile, case.pod, case.prepared, case.nodes, row, only)
                yield from list_rejections(asked, case.actual)

    def combinations(self) -> tuple[Combination, ...]:
        return tuple(Combination(names, len(rows)) for names, rows in self.patterns())


def _match_names(case: Case, names: frozenset[str]) -> Mask:
    known = [case.actual.row(name) for name in names]
    return np.isin(case.alive, [row for row in known if row is not None])


# All nodes, where a decision looks at no more than it needs


@dataclass(frozen=True, slots=True)
class Survey:
    """The findings about all rows."""

    case: Case
    filtered: Filtered | None
    scored: Scored | None
    rejectors: Rejectors

    @property
    def infeasible(self) -> RowNumbers:
        feasible = NO_ROWS if self.filtered is None else self.filtered.feasible_rows
        return np.setdiff1d(self.case.alive, feasible)


def survey_nodes(case: Case, outcome: Found | Failed) -> Survey:
    if case.prepared.rejected is not None:
        none = Rejectors((), case.alive, np.zeros((0, len(case.alive)), np.bool_))
        return Survey(case, None, None, none)
    # A decision looks at no more than it needs.
    filtered = find_feasible(case.profile, case.pod, case.prepared, case.nodes, outcome.tried_first)
    feasible = filtered.feasible_rows
    scored = score_rows(case.profile, case.pod, case.nodes, feasible) if len(feasible) else None
    return Survey(case, filtered, scored, Rejectors.of(case))


# Single nodes: the best ones, and the one that was asked about


def list_best(survey: Survey, chosen: str) -> tuple[ScoredNode, ...]:
    """Returns the best nodes, the chosen one first, then by score in visit order."""
    scored = survey.scored
    assert scored is not None, "a node was found"
    ranks = survey.case.actual.ranks[scored.rows]
    order = np.lexsort((ranks, -scored.totals))[: _BEST + 1].tolist()
    scores = [_score(survey, scored, at) for at in order]
    first = [each for each in scores if each.node == chosen]
    others = [each for each in scores if each.node != chosen]
    if not first:
        # It ties with more nodes than are listed, or it was nominated.
        row = survey.case.actual.row(chosen)
        first = [_score(survey, scored, int(np.flatnonzero(scored.rows == row)[0]))]
    return tuple([*first, *others][:_BEST])


def name_equals(survey: Survey) -> tuple[str, ...]:
    """Returns the nodes that score as much as the best one."""
    best = () if survey.scored is None else survey.scored.best().tolist()
    return tuple(survey.case.actual.names(best))


def answer_for_node(survey: Survey, explanation: Explanation, node: str) -> NodeAnswer:
    row = survey.case.row(node)
    if survey.filtered is None:
        return NodeAnswer(node, False, explanation.rejections)
    scored = survey.scored
    if scored is not None and row[0] in scored.rows:
        at = int(np.flatnonzero(scored.rows == row[0])[0])
        better = int(np.count_nonzero(scored.totals > scored.totals[at]))
        return NodeAnswer(node, True, (), _score(survey, scored, at), better)
    return NodeAnswer(node, False, tuple(_list_refusals(survey, row, explanation)))


def _list_refusals(survey: Survey, row: RowNumbers, explanation: Explanation) -> list[Rejection]:
    """Returns the plugins that reject a node: the first as in the message, then the others."""
    case, node = survey.case, survey.case.actual.name(int(row[0]))
    beyond = () if explanation.left_out is None else (explanation.left_out,)
    first = [
        replace(each, count=1, nodes=(node,))
        for each in (*explanation.rejections, *beyond)
        if node in each.nodes
    ]
    named = {each.plugin for each in first}
    return first + [each for each in survey.rejectors.alone(case, row) if each.plugin not in named]


def _score(survey: Survey, scored: Scored, at: int) -> ScoredNode:
    by_plugin = {name: int(scores[at]) for name, scores in scored.by_plugin.items()}
    name = survey.case.actual.name(int(scored.rows[at]))
    return ScoredNode(name, int(scored.totals[at]), by_plugin)
