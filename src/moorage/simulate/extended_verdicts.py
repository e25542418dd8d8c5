"""Verdicts about pods that extenders take part in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from moorage.engine import Engine, diagnosis
from moorage.engine.actions import AskExtender
from moorage.engine.cycle import Found, Window
from moorage.engine.events import ExtenderAnswered
from moorage.engine.extenders.consultation import Consultation, Steps, find_interested
from moorage.engine.extenders.review import Review
from moorage.engine.extenders.survey import PodSurvey, Rows
from moorage.framework.plugin import Scores
from moorage.framework.status import PluginError
from moorage.objects.pod import Pod

from .verdicts import (
    PodVerdict,
    describe_failure,
    find_early_verdict,
    find_refusals,
    name_scores,
    sort_names,
)

#: Answers a question of a decision.
Answer = Callable[[AskExtender], ExtenderAnswered]

_T = TypeVar("_T")


def run_steps(steps: Steps[_T], answer: Answer) -> _T:
    """Runs a decision to its end, and answers every question at once."""
    answers: tuple[ExtenderAnswered, ...] = ()
    try:
        questions = next(steps)
        while True:
            answers = tuple(answer(each) for each in questions)
            questions = steps.send(answers)
    except StopIteration as stop:
        value: _T = stop.value
        return value


def find_extended_verdict(
    engine: Engine, pod: Pod, start: int, answer: Answer, answer_aside: Answer
) -> PodVerdict:
    """Evaluates a pod on all nodes and asks extenders, without changing anything.

    A decision looks at no more than it needs; the other nodes are asked about separately.
    """
    early = find_early_verdict(engine, pod)
    if early is not None:
        return early
    consultation = _begin(engine, pod, start)
    try:
        outcome = run_steps(consultation.decide(), answer)
        if isinstance(outcome, Found):
            return _describe_placement(engine, pod, start, outcome, answer_aside)
    except PluginError as error:
        return PodVerdict(message=str(error), error=True)
    survey = consultation.survey
    remedied = run_steps(Review(consultation, outcome).seek_remedy(), answer)
    verdict = describe_failure(survey.profile, pod, survey.nodes, outcome, remedied)
    return replace(verdict, rejectors=diagnosis.rejectors(outcome))


def _begin(engine: Engine, pod: Pod, start: int) -> Consultation:
    profile = engine.profiles[pod.spec.scheduler_name]
    survey = PodSurvey(profile, pod, engine.cluster, None, Window(start, is_extended=True))
    configuration = engine.configuration
    return Consultation(
        survey,
        find_interested(configuration.extenders, pod),
        0,
        keep_pods=configuration.extender_nodes_keep_pods,
    )


def _describe_placement(
    engine: Engine, pod: Pod, start: int, found: Found, answer: Answer
) -> PodVerdict:
    consultation = _begin(engine, pod, start)
    survey, nodes = consultation.survey, engine.cluster.nodes
    rows = survey.look()
    left = run_steps(consultation.filter(rows), answer)
    whole = run_steps(consultation.choose(left), answer)
    assert whole.scored is not None, "rows were scored"
    assert whole.filtered is not None, "all rows were filtered"
    by_extender = {prefix: _name(engine, *scores) for prefix, scores in consultation.scores.items()}
    by_plugin = {
        name: name_scores(nodes, whole.scored, of) for name, of in whole.scored.by_plugin.items()
    }
    return PodVerdict(
        nodes=sort_names(found.pre_filtered.node_names),
        filter=find_refusals(nodes, whole.filtered),
        scores={**by_plugin, **by_extender},
        total=name_scores(nodes, whole.scored, whole.scored.totals),
        best=tuple(sorted(nodes.names(whole.scored.best().tolist()))),
        chosen=nodes.name(found.row),
    )


def _name(engine: Engine, rows: Rows, scores: Scores) -> dict[str, int]:
    return dict(zip(engine.cluster.nodes.names(rows.tolist()), scores.tolist(), strict=True))
