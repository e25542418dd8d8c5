"""Explains a pod: why it is pending, why it goes to its node, and what would change that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec
import numpy as np

from moorage.engine import budget, diagnosis
from moorage.engine.cycle import Found, conclude
from moorage.engine.decider import Decider
from moorage.engine.remedies import seek_remedy
from moorage.framework.advice import Advice
from moorage.framework.attempt import Failed, Filtered
from moorage.framework.calls import ask_pre_enqueue
from moorage.framework.edits import RemoveGates, SetScheduler, pod_at
from moorage.framework.status import Code, PluginError, Rejected
from moorage.objects.pod import Pod

from .case import Case
from .explanation import (
    Explanation,
    Preemption,
    Rejection,
    Suggestion,
)
from .rejections import (
    Survey,
    answer_for_node,
    list_best,
    list_rejections,
    merge_rejections,
    name_equals,
    survey_nodes,
)
from .steps import Steps, finish
from .suggestions import (
    Pattern,
    make_suggestion,
    make_suggestions,
    rank_suggestions,
    suggest_eviction,
)

replace = msgspec.structs.replace

# So often an explanation in steps begins again; then it is made at once.
_MOST_BEGINNINGS = 3


class NoSuchNode(LookupError):
    """The node does not exist."""


def explain(decider: Decider, pod: Pod, node: str = "") -> Explanation:
    """Explains a waiting, running or imagined pod, and if wanted its relation to one node.

    Nothing is changed. A running pod is explained as if it still waited, without its own requests.
    """
    return finish(_explain(decider, pod, node))


def explain_in_steps(decider: Decider, pod: Pod, node: str = "") -> Steps[Explanation]:
    """Explains in steps, between decisions.

    It begins again when nodes come or go, but not without end.
    """
    nodes = decider.cluster.nodes
    for _ in range(_MOST_BEGINNINGS):
        order = nodes.order
        steps = _explain(decider, pod, node)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return cast(Explanation, end.value)
            yield
            if nodes.order is not order:
                break
    return explain(decider, pod, node)


def _explain(decider: Decider, pod: Pod, node: str) -> Steps[Explanation]:
    if node and decider.cluster.nodes.row(node) is None:
        raise NoSuchNode(node)
    base = Explanation(
        pod.key, pod.spec.scheduler_name, "pending", node_count=len(decider.cluster.nodes)
    )
    too_costly = budget.excess(pod, decider.cluster, budget.MOST_WORK // budget.PASSES_TO_EXPLAIN)
    if too_costly is not None:
        return replace(base, message=f"too costly to be explained: {too_costly}")
    if pod.spec.scheduler_name not in decider.profiles:
        names = decider.profiles
        profiles = {name: _case(decider, SetScheduler(name).apply(pod)) for name in names}
        return _explain_foreign(base, profiles)
    case = _case(decider, pod)
    running = case.gone[0][0].node_name if case.gone else ""
    base = replace(base, running_on=running)
    if pod.terminating:
        return replace(base, state="terminating", message="the pod is being deleted")
    refused = _find_refusal(case)
    if refused is not None:
        return _explain_gated(case, base, *refused)
    if not base.node_count:
        return replace(base, message=diagnosis.NO_NODES)
    return (yield from _try_to_explain(case, base, node))


def _try_to_explain(case: Case, base: Explanation, node: str) -> Steps[Explanation]:
    steps = _explain_decision(case, base, node)
    try:
        if case.gone:
            # The node without it was copied, and would soon be out of date.
            return finish(steps)
        return (yield from steps)
    except PluginError as error:
        return replace(base, state="error", message=str(error))


def _case(decider: Decider, pod: Pod) -> Case:
    """Returns the pod as it was before it got its node, and without what it takes there."""
    nodes = decider.cluster.nodes
    profile = decider.profiles[pod.spec.scheduler_name]
    placed = decider.cluster.pod(pod.uid)
    row = None if placed is None else nodes.row(placed.node_name)
    if placed is None or row is None:
        return Case.of(profile, pod, nodes, (), lambda: decider.cluster.changes.generation)
    return Case.of(profile, replace(pod, node_name=""), nodes, ((placed, row),))


def _explain_decision(case: Case, base: Explanation, node: str) -> Steps[Explanation]:
    outcome = _conclude(case)
    survey = survey_nodes(case, outcome)
    filtered = survey.filtered
    explanation = replace(
        base,
        feasible_count=0 if filtered is None else len(filtered.feasible_rows),
        rejections=_rejections(case, filtered, base.node_count),
        left_out=_left_out(survey, outcome),
        combinations=survey.rejectors.among(survey.infeasible).combinations(),
    )
    if isinstance(outcome, Found):
        chosen = case.actual.name(outcome.row)
        explanation = replace(
            explanation,
            state="fits",
            chosen=chosen,
            equally_good=name_equals(survey),
            scores=list_best(survey, chosen),
        )
    else:
        explanation = yield from _explain_failure(case, outcome, explanation)
    if node:
        explanation = replace(explanation, node=answer_for_node(survey, explanation, node))
    about = [each for each in explanation.suggestions if not node or node in each.nodes]
    yield
    found = yield from _suggest(survey, node)
    return replace(explanation, suggestions=rank_suggestions(case, (*found, *about)))


def _rejections(case: Case, filtered: Filtered | None, count: int) -> tuple[Rejection, ...]:
    rejected = case.prepared.rejected
    if rejected is not None:
        return (Rejection(case.prepared.rejected_by, rejected.code, rejected.reasons, count),)
    return () if filtered is None else merge_rejections(list_rejections(filtered, case.actual))


def _left_out(survey: Survey, outcome: Found | Failed) -> Rejection | None:
    """Returns nodes beyond those that pre-filters named, except a nominated one."""
    case = survey.case
    named = case.prepared.node_names
    if named is None or case.prepared.rejected is not None:
        return None
    tried = () if outcome.tried_first is None else outcome.tried_first.rows
    every = case.actual.names(np.setdiff1d(case.alive, tried).tolist())
    beyond = tuple(name for name in every if name not in named)
    plugins = diagnosis.find_narrowing(outcome.pre_filtered, outcome.tried_first)
    reason = diagnosis.describe_outside(plugins)
    by = " ".join(sorted(case.prepared.narrowed_by))
    return Rejection(by, Code.UNRESOLVABLE, (reason,), len(beyond), beyond) if beyond else None


def _explain_failure(case: Case, failed: Failed, explanation: Explanation) -> Steps[Explanation]:
    remedied = seek_remedy(case.profile, case.pod, failed, case.nodes)
    message = diagnosis.message(failed, remedied.text)
    remedy = remedied.remedy
    if remedy is not None:
        victims = tuple(pod_at(victim, remedy.node_name) for victim in remedy.victims)
        found = Preemption(remedy.node_name, victims)
        return replace(explanation, state="preempting", message=message, preemption=found)
    yield
    latest = case.latest()
    outcome = failed if latest is case else _conclude(latest)
    advice = suggest_eviction(latest, outcome) if isinstance(outcome, Failed) else None
    return replace(explanation, message=message, suggestions=() if advice is None else (advice,))


def _conclude(case: Case) -> Found | Failed:
    return conclude(case.profile, case.pod, case.prepared, case.nodes)


def _suggest(survey: Survey, node: str) -> Steps[tuple[Suggestion, ...]]:
    case, infeasible = survey.case, survey.infeasible
    if not len(infeasible):
        return ()
    prepared = case.prepared
    if prepared.rejected is not None:
        by = (prepared.rejected_by,) if prepared.rejected_by else prepared.narrowed_by
        patterns: list[Pattern] = [((plugin,), infeasible) for plugin in by]
    else:
        if node:
            infeasible = np.intersect1d(infeasible, case.row(node))
        patterns = survey.rejectors.among(infeasible).patterns()
    return (yield from make_suggestions(case, patterns, infeasible))


# Pods that are not decided about


def _explain_foreign(base: Explanation, profiles: Mapping[str, Case]) -> Explanation:
    """Explains a pod that no profile serves, as each profile would treat it."""
    problem = f"no profile serves scheduler {base.scheduler}"
    found = tuple(
        make_suggestion(
            case,
            (),
            Advice(problem, (SetScheduler(name),), kind="scheduler"),
            case.feasible(case.alive),
        )
        for name, case in profiles.items()
    )
    return replace(base, state="foreign", message=problem, suggestions=found)


def _find_refusal(case: Case) -> tuple[str, Rejected] | None:
    """Returns the plugin that does not let the pod into the queue; None if there is none."""
    for plugin in case.profile.pre_enqueue:
        refused = ask_pre_enqueue(plugin, case.pod)
        if refused is not None:
            return plugin.name, refused
    return None


def _explain_gated(case: Case, base: Explanation, plugin: str, refused: Rejected) -> Explanation:
    """Explains a pod that a plugin holds back; without its gates, if it has any."""
    why = Rejection(plugin, refused.code, refused.reasons, base.node_count)
    found: tuple[Suggestion, ...] = ()
    gates = tuple(gate.name for gate in case.pod.spec.scheduling_gates or ())
    if gates:
        advice = Advice(refused.message, (RemoveGates(gates),), kind="gates")
        found = (make_suggestion(case, (plugin,), advice, case.helped(advice.edits, case.alive)),)
    return replace(
        base, state="gated", message=refused.message, rejections=(why,), suggestions=found
    )
