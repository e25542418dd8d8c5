"""Why a pod is pending, why it goes where it goes, and what would change that."""

from __future__ import annotations

import msgspec
import numpy as np

from mooring.engine import budget, diagnosis
from mooring.engine.cycle import Found, conclude
from mooring.engine.engine import Engine
from mooring.engine.remedies import seek_remedy
from mooring.framework.attempt import Failed, Filtered
from mooring.framework.edits import SetScheduler, pod_at
from mooring.framework.status import Code, PluginError
from mooring.objects.pod import Pod

from .case import Case
from .data import Explanation, Preemption, Rejection, Suggestion
from .importance import advise_on_priority
from .looking import Looked, look
from .nodes import answer, best
from .rejecting import merged, rejections
from .suggesting import Pattern, ranked, suggestions
from .undecided import held_back, told_foreign, told_gated

replace = msgspec.structs.replace


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
    too_costly = budget.excess(pod, engine.cluster, budget.MOST_WORK // budget.PASSES_TO_EXPLAIN)
    if too_costly is not None:
        return replace(base, message=f"too costly to be explained: {too_costly}")
    if pod.spec.scheduler_name not in engine.profiles:
        profiles = {
            name: _case(engine, SetScheduler(name).applied(pod)) for name in engine.profiles
        }
        return told_foreign(base, profiles)
    case = _case(engine, pod)
    running = case.gone[0][0].node_name if case.gone else ""
    base = replace(base, running_on=running)
    if pod.terminating:
        return replace(base, state="terminating", message="the pod is being deleted")
    refused = held_back(case)
    if refused is not None:
        return told_gated(case, base, *refused)
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


def _decided(case: Case, base: Explanation, node: str) -> Explanation:
    outcome = conclude(case.profile, case.pod, case.prepared, case.nodes)
    looked = look(case, outcome)
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
        told = replace(told, state="fits", chosen=chosen, scores=best(looked, chosen))
    else:
        told = _failed(case, outcome, told)
    about = [each for each in told.suggestions if not node or node in each.nodes]
    told = replace(told, suggestions=ranked(case, (*_suggested(looked, node), *about)))
    return replace(told, node=answer(looked, told, node)) if node else told


def _rejections(case: Case, filtered: Filtered | None, count: int) -> tuple[Rejection, ...]:
    rejected = case.prepared.rejected
    if rejected is not None:
        return (Rejection(case.prepared.rejected_by, rejected.code, rejected.reasons, count),)
    return () if filtered is None else merged(rejections(filtered, case.actual))


def _left_out(looked: Looked, outcome: Found | Failed) -> Rejection | None:
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


def _suggested(looked: Looked, node: str) -> tuple[Suggestion, ...]:
    case, infeasible = looked.case, looked.infeasible
    if not len(infeasible):
        return ()
    prepared = case.prepared
    if prepared.rejected is not None:
        by = (prepared.rejected_by,) if prepared.rejected_by else prepared.narrowed_by
        patterns: list[Pattern] = [((plugin,), infeasible) for plugin in by]
    else:
        if node:
            infeasible = np.intersect1d(infeasible, case.row(node))
        patterns = looked.rejectors.among(infeasible).patterns()
    return suggestions(case, patterns, infeasible)
