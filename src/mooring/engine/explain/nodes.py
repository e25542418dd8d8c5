"""What is told of single nodes: the best ones, and the one that was asked about."""

from __future__ import annotations

import msgspec
import numpy as np

from mooring.framework.attempt import Scored

from .case import RowNumbers
from .data import Explanation, NodeAnswer, NodeScore, Rejection
from .looking import Looked

replace = msgspec.structs.replace

# The best nodes are those that a choice was made among.
_BEST = 5


def best(looked: Looked, chosen: str) -> tuple[NodeScore, ...]:
    """The best nodes, the chosen one first, then by score in visit order."""
    scored = looked.scored
    assert scored is not None, "a node was found"
    ranks = looked.case.actual.ranks[scored.rows]
    order = np.lexsort((ranks, -scored.totals))[: _BEST + 1].tolist()
    told = [_score(looked, scored, at) for at in order]
    first = [each for each in told if each.node == chosen]
    others = [each for each in told if each.node != chosen]
    if not first:
        # It ties with more nodes than are told, or it was nominated.
        row = looked.case.actual.row(chosen)
        first = [_score(looked, scored, int(np.flatnonzero(scored.rows == row)[0]))]
    return tuple([*first, *others][:_BEST])


def answer(looked: Looked, told: Explanation, node: str) -> NodeAnswer:
    row = looked.case.row(node)
    if looked.filtered is None:
        return NodeAnswer(node, False, told.rejections)
    scored = looked.scored
    if scored is not None and row[0] in scored.rows:
        at = int(np.flatnonzero(scored.rows == row[0])[0])
        better = int(np.count_nonzero(scored.totals > scored.totals[at]))
        return NodeAnswer(node, True, (), _score(looked, scored, at), better)
    return NodeAnswer(node, False, tuple(_all_refusals(looked, row, told)))


def _all_refusals(looked: Looked, row: RowNumbers, told: Explanation) -> list[Rejection]:
    """Who rejects a node: the first as it is told, then the others."""
    case, node = looked.case, looked.case.actual.name(int(row[0]))
    beyond = () if told.left_out is None else (told.left_out,)
    first = [
        replace(each, count=1, nodes=(node,))
        for each in (*told.rejections, *beyond)
        if node in each.nodes
    ]
    named = {each.plugin for each in first}
    return first + [each for each in looked.rejectors.alone(case, row) if each.plugin not in named]


def _score(looked: Looked, scored: Scored, at: int) -> NodeScore:
    by_plugin = {name: int(scores[at]) for name, scores in scored.by_plugin.items()}
    name = looked.case.actual.name(int(scored.rows[at]))
    return NodeScore(name, int(scored.totals[at]), by_plugin)
