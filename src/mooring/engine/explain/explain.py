"""Why a pod is pending, why it goes where it goes, and what would change that."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from mooring.engine import diagnosis
from mooring.engine.cycle import Found, conclude, find_feasible
from mooring.engine.engine import Engine
from mooring.engine.remedies import seek_remedy
from mooring.framework.attempt import Failed, Filtered, Scored
from mooring.framework.run import score_rows
from mooring.framework.status import Code, PluginError, Rejected
from mooring.objects.pod import Pod

from .advice import Pattern, suggestions
from .case import NO_ROWS, Case, RowNumbers, pod_at
from .data import Explanation, NodeAnswer, NodeScore, Preemption, Rejection, Suggestion
from .edits import RemoveGates, SetScheduler
from .importance import advise_on_priority
from .rejecting import Rejectors, merged, rejections

replace = msgspec.structs.replace

# The best nodes are those that a choice was made among.
_BEST = 5


class UnknownNode(LookupError):
    """A node was asked about that is not there."""


def explain(engine: Engine, pod: Pod, node: str = "") -> Explanation:
    """Explains a pod that waits, runs or is only imagined; asked about a node, that one too.

    Nothing is changed. A pod that runs is explained as if it did not, where it is.
    """
    if node and engine.cluster.nodes.row(node) is None:
        raise UnknownNode(node)
    base = Explanation(
        pod.key, pod.spec.scheduler_name, "pending", node_count=len(engine.cluster.nodes)
    )
    if pod.spec.scheduler_name not in engine.profiles:
        return _foreign(engine, pod, base)
    case = _case(engine, pod)
    running = case.gone[0][0].node_name if case.gone else ""
    base = replace(base, running_on=running)
    if pod.terminating:
        return replace(base, state="terminating", message="the pod is being deleted")
    refused = _held_back(case)
    if refused is not None:
        return _gated(case, base, *refused)
    if not base.node_count:
        return replace(base, message=diagnosis.NO_NODES)
    try:
        return _decided(case, base, node)
    except PluginError as error:
        return replace(base, state="error", message=str(error))


def _case(engine: Engine, pod: Pod) -> Case:
    """The pod as it was before it got its node, and without what it takes there."""
    nodes = engine.cluster.nodes
    profile = engine.profiles[pod.spec.scheduler_name]
    placed = engine.cluster.pod(pod.uid)
    row = None if placed is None else nodes.row(placed.node_name)
    if placed is None or row is None:
        return Case.of(profile, pod, nodes, ())
    return Case.of(profile, replace(pod, node_name=""), nodes, ((placed, row),))


# Pods that are not decided about


def _foreign(engine: Engine, pod: Pod, base: Explanation) -> Explanation:
    wanted = pod.spec.scheduler_name
    told = []
    for name in engine.profiles:
        edits = (SetScheduler(name),)
        case = _case(engine, SetScheduler(name).applied(pod))
        helped = case.feasible(case.alive)
        told.append(
            Suggestion(
                kind="scheduler",
                plugins=(),
                problem=f"no profile serves scheduler {wanted}",
                remedy=edits[0].told,
                effect="fits" if len(helped) else "none",
                edits=edits,
                count=len(helped),
                nodes=tuple(case.actual.names(helped.tolist())),
            )
        )
    message = f"no profile serves scheduler {wanted}"
    return replace(base, state="foreign", message=message, suggestions=tuple(told))


def _held_back(case: Case) -> tuple[str, Rejected] | None:
    for plugin in case.profile.pre_enqueue:
        refused = plugin.pre_enqueue(case.pod)
        if refused is not None:
            return plugin.name, refused
    return None


def _gated(case: Case, base: Explanation, plugin: str, refused: Rejected) -> Explanation:
    why = Rejection(plugin, refused.code, refused.reasons, base.node_count)
    told: tuple[Suggestion, ...] = ()
    gates = tuple(gate.name for gate in case.pod.spec.scheduling_gates or ())
    if gates:
        edits = (RemoveGates(gates),)
        helped = case.helped(edits, case.alive)
        told = (
            Suggestion(
                kind="gates",
                plugins=(plugin,),
                problem=refused.message,
                remedy=edits[0].told if len(helped) else "",
                effect="fits" if len(helped) else "none",
                edits=edits if len(helped) else (),
                count=len(helped),
                nodes=tuple(case.actual.names(helped.tolist())),
            ),
        )
    return replace(
        base, state="gated", message=refused.message, rejections=(why,), suggestions=told
    )


# Pods that are


@dataclass(frozen=True, slots=True)
class _Looked:
    """What was found out about all rows."""

    case: Case
    filtered: Filtered | None
    scored: Scored | None
    rejectors: Rejectors

    @property
    def infeasible(self) -> RowNumbers:
        feasible = NO_ROWS if self.filtered is None else self.filtered.feasible_rows
        return np.setdiff1d(self.case.alive, feasible)


def _decided(case: Case, base: Explanation, node: str) -> Explanation:
    outcome = conclude(case.profile, case.pod, case.prepared, case.nodes)
    looked = _look(case, outcome)
    filtered = looked.filtered
    told = replace(
        base,
        feasible_count=0 if filtered is None else len(filtered.feasible_rows),
        rejections=_rejections(case, filtered, base.node_count),
        left_out=_left_out(looked, outcome),
        combinations=looked.rejectors.among(looked.infeasible).combinations(),
    )
    if isinstance(outcome, Found):
        chosen = case.actual.name(outcome.row)
        told = replace(told, state="fits", chosen=chosen, scores=_best(looked, chosen))
    else:
        told = _failed(case, outcome, told)
    about = [each for each in told.suggestions if not node or node in each.nodes]
    told = replace(told, suggestions=(*_suggested(looked, node), *about))
    return replace(told, node=_answer(looked, told, node)) if node else told


def _look(case: Case, outcome: Found | Failed) -> _Looked:
    if case.prepared.rejected is not None:
        none = Rejectors((), case.alive, np.zeros((0, len(case.alive)), np.bool_))
        return _Looked(case, None, None, none)
    # A decision looks at no more than it needs.
    filtered = find_feasible(case.profile, case.pod, case.prepared, case.nodes, outcome.tried_first)
    feasible = filtered.feasible_rows
    scored = score_rows(case.profile, case.pod, case.nodes, feasible) if len(feasible) else None
    return _Looked(case, filtered, scored, Rejectors.of(case))


def _rejections(case: Case, filtered: Filtered | None, count: int) -> tuple[Rejection, ...]:
    rejected = case.prepared.rejected
    if rejected is not None:
        return (Rejection(case.prepared.rejected_by, rejected.code, rejected.reasons, count),)
    return () if filtered is None else merged(rejections(filtered, case.actual))


def _left_out(looked: _Looked, outcome: Found | Failed) -> Rejection | None:
    """The nodes beyond those that pre-filters named; a nominated one was looked at all the same."""
    case = looked.case
    named = case.prepared.node_names
    if named is None or case.prepared.rejected is not None:
        return None
    tried = () if outcome.tried_first is None else outcome.tried_first.rows
    every = case.actual.names(np.setdiff1d(case.alive, tried).tolist())
    beyond = tuple(name for name in every if name not in named)
    plugins = diagnosis.narrowing(outcome.pre_filtered, outcome.tried_first)
    reason = diagnosis.outside(plugins)
    told = " ".join(sorted(case.prepared.narrowed_by))
    return Rejection(told, Code.UNRESOLVABLE, (reason,), len(beyond), beyond) if beyond else None


def _failed(case: Case, failed: Failed, told: Explanation) -> Explanation:
    remedied = seek_remedy(case.profile, case.pod, failed, case.nodes)
    message = diagnosis.message(failed, remedied.told)
    remedy = remedied.remedy
    if remedy is not None:
        victims = tuple(pod_at(victim, remedy.node_name) for victim in remedy.victims)
        found = Preemption(remedy.node_name, victims)
        return replace(told, state="preempting", message=message, preemption=found)
    advice = advise_on_priority(case, failed) if case.profile.post_filter else None
    return replace(told, message=message, suggestions=() if advice is None else (advice,))


def _suggested(looked: _Looked, node: str) -> tuple[Suggestion, ...]:
    case, infeasible = looked.case, looked.infeasible
    if not len(infeasible):
        return ()
    prepared = case.prepared
    if prepared.rejected is not None:
        by = (prepared.rejected_by,) if prepared.rejected_by else prepared.narrowed_by
        patterns: list[Pattern] = [((plugin,), infeasible) for plugin in by]
    else:
        if node:
            infeasible = np.intersect1d(infeasible, _row(case, node))
        patterns = looked.rejectors.among(infeasible).patterns()
    return suggestions(case, patterns, infeasible)


def _row(case: Case, node: str) -> RowNumbers:
    return np.array([case.actual.row(node)], np.intp)


# Scores


def _best(looked: _Looked, chosen: str) -> tuple[NodeScore, ...]:
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


def _score(looked: _Looked, scored: Scored, at: int) -> NodeScore:
    by_plugin = {name: int(scores[at]) for name, scores in scored.by_plugin.items()}
    name = looked.case.actual.name(int(scored.rows[at]))
    return NodeScore(name, int(scored.totals[at]), by_plugin)


def _answer(looked: _Looked, told: Explanation, node: str) -> NodeAnswer:
    row = _row(looked.case, node)
    if looked.filtered is None:
        return NodeAnswer(node, False, told.rejections)
    scored = looked.scored
    if scored is not None and row[0] in scored.rows:
        at = int(np.flatnonzero(scored.rows == row[0])[0])
        better = int(np.count_nonzero(scored.totals > scored.totals[at]))
        return NodeAnswer(node, True, (), _score(looked, scored, at), better)
    return NodeAnswer(node, False, tuple(_all_refusals(looked, row, told)))


def _all_refusals(looked: _Looked, row: RowNumbers, told: Explanation) -> list[Rejection]:
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
