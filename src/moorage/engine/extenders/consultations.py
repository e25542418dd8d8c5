"""The decisions that wait for extenders. Other decisions are made meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msgspec.structs import replace

from moorage.config import Configuration, Extender
from moorage.documents.errors import STOPPED
from moorage.engine.actions import Action, AskExtender
from moorage.engine.attempts import Attempts
from moorage.engine.cycle import Found
from moorage.engine.events import ExtenderAnswered
from moorage.engine.remedies import RemedyResult
from moorage.framework.attempt import Failed
from moorage.framework.status import PluginError
from moorage.objects.pod import Pod
from moorage.queue import Entity, Queue

from .consultation import Consultation, ExtenderFailed, Steps, find_interested
from .review import Review
from .survey import Overtaken, PodSurvey

# How much longer than an extender may take, in seconds, its answer is waited for. The sender
# tells when its time is up; this is for answers that get lost.
_GRACE = 1.0

_Outcome = tuple[Found | Failed, RemedyResult | None]

#: Takes a result, or an error, and the time.
Conclude = Callable[[Any, float], None]


@dataclass(slots=True)
class WaitingDecision:
    """A decision that waits for answers."""

    #: The pod, or the group of pods, that is decided.
    queued: Entity
    steps: Steps[Any]
    #: What is done with the result, or with the error that ended it.
    conclude: Conclude
    is_about_group: bool = False
    questions: tuple[AskExtender, ...] = ()
    #: What has been answered, by the number of the question.
    answers: dict[int, ExtenderAnswered] = field(default_factory=dict)
    deadline: float = 0.0

    @property
    def uid(self) -> str:
        """The pod that extenders are asked about."""
        return self.questions[0].pod.uid

    @property
    def is_answered(self) -> bool:
        return len(self.answers) == len(self.questions)


class Consultations:
    """Begins decisions that need extenders, a bounded number at a time, and resumes them."""

    def __init__(
        self,
        configuration: Configuration,
        queue: Queue,
        attempts: Attempts,
        pending: Mapping[str, Pod],
        emit: Callable[[Action], None],
        give_up: Callable[[Entity, BaseException, float], None],
    ) -> None:
        """`give_up` is called for a decision that raises an exception of no plugin."""
        self._extenders = configuration.extenders
        self._most = configuration.extender_concurrency
        self._keep_pods = configuration.extender_nodes_keep_pods
        self._queue = queue
        self._attempts = attempts
        self._pending = pending
        self._emit = emit
        self._give_up = give_up
        #: The decisions that wait for answers, by the uid of the pod.
        self.waiting: dict[str, WaitingDecision] = {}
        #: Whether an extender chooses among nodes, interested or not.
        self.is_choosing = any(each.filter_verb or each.prioritize_verb for each in self._extenders)

    def begin(self, queued: Entity, survey: PodSurvey, now: float) -> None:
        """Begins the decision about a pod."""
        pod = queued.pod
        interested = find_interested(self._extenders, pod)
        consultation = Consultation(survey, interested, queued.attempts, keep_pods=self._keep_pods)
        steps = _decide(consultation, any(each.preempt_verb for _, each in interested))
        conclude = partial(self._conclude, queued)
        self._advance(WaitingDecision(queued, steps, conclude), now)

    def _conclude(self, queued: Entity, result: _Outcome | PluginError, now: float) -> None:
        if isinstance(result, PluginError):
            self._attempts.conclude(queued, result, now)
        else:
            outcome, remedied = result
            self._attempts.conclude(queued, outcome, now, remedied)

    def filters(self, pod: Pod) -> bool:
        """Whether some extender filters nodes for a pod."""
        return any(each.filter_verb and each.concerns(pod.spec) for each in self._extenders)

    def begin_group(
        self, group: Entity, surveys: Sequence[PodSurvey], conclude: Conclude, now: float
    ) -> None:
        """Asks about members of a group before it is decided, one after the other.

        The result is the names of the nodes that each member may go to, by uid.
        """
        steps = self._ask_about_members(surveys, group.attempts)
        self._advance(WaitingDecision(group, steps, conclude, is_about_group=True), now)

    def _ask_about_members(
        self, surveys: Sequence[PodSurvey], attempt: int
    ) -> Steps[dict[str, tuple[str, ...]]]:
        allowed = {}
        for survey in surveys:
            pod = survey.pod
            interested = find_interested(self._extenders, pod)
            consultation = Consultation(survey, interested, attempt, rechecks=False)
            rows = survey.look()
            try:
                # Where others of the group must be first, any node may do once they are there.
                left = yield from consultation.filter(rows if len(rows) else survey.nodes.order)
            except ExtenderFailed:
                if pod.uid in self._pending:
                    raise
            else:
                allowed[pod.uid] = left
        return allowed

    def answer(self, event: ExtenderAnswered, now: float) -> None:
        """Takes in the answer of an extender; an answer that is not awaited is ignored."""
        decision = self.waiting.get(event.uid)
        if decision is None:
            return
        asked = event.attempt, event.number
        if any(asked == (each.attempt, each.number) for each in decision.questions):
            decision.answers[event.number] = event
            if decision.is_answered:
                self._resume(decision, now)

    def look_after(self, now: float) -> None:
        """Ends decisions about pods that are not ours any more, or whose answers were lost."""
        for uid, decision in list(self.waiting.items()):
            if decision.deadline <= now or uid not in self._pending:
                for each in decision.questions:
                    lost = _describe_loss(each, self._extenders[each.extender])
                    nothing = ExtenderAnswered(uid, each.attempt, each.number, failure=lost)
                    decision.answers.setdefault(each.number, nothing)
                self._resume(decision, now)

    def next_deadline(self) -> float | None:
        """Returns when the next answer counts as lost."""
        return min((each.deadline for each in self.waiting.values()), default=None)

    def drop(self, uid: str) -> None:
        """Forgets the decision about a pod, whatever is answered."""
        decision = self.waiting.pop(uid, None)
        if decision is not None:
            decision.steps.close()
            self._make_room()

    def _resume(self, decision: WaitingDecision, now: float) -> None:
        queued, uid = decision.queued, decision.uid
        del self.waiting[uid]
        try:
            pod = self._pending.get(uid)
            if decision.is_about_group:
                self._advance(decision, now)
            elif pod is None:
                decision.steps.close()
                self._queue.done(uid)
            elif pod.terminating or not _is_same(pod, queued.pod):
                decision.steps.close()
                self._queue.put_back(queued, pod=pod, now=now)
            else:
                self._advance(decision, now)
        finally:
            self._make_room()

    def _advance(self, decision: WaitingDecision, now: float) -> None:
        """Continues a decision until it has questions or ends."""
        answers = tuple(decision.answers[each.number] for each in decision.questions)
        queued = decision.queued
        try:
            decision.questions = decision.steps.send(answers if answers else None)  # type: ignore[arg-type]
        except StopIteration as end:
            decision.conclude(end.value, now)
        except PluginError as error:
            decision.conclude(error, now)
        except Overtaken:
            self._queue.put_back(queued, pod=self._pending[queued.pod.uid], now=now)
        except STOPPED as error:  # one pod must not stop the others
            self._give_up(queued, error, now)
        else:
            self._wait(decision, now)
        self._make_room()

    def _wait(self, decision: WaitingDecision, now: float) -> None:
        decision.answers = {}
        asked = (self._extenders[each.extender] for each in decision.questions)
        decision.deadline = now + max(each.timeout_seconds for each in asked) + _GRACE
        self.waiting[decision.uid] = decision
        for each in decision.questions:
            self._emit(each)

    def _make_room(self) -> None:
        self._queue.hold_back(len(self.waiting) >= self._most)


def _decide(consultation: Consultation, reviews: bool) -> Steps[_Outcome]:
    outcome = yield from consultation.decide()
    if isinstance(outcome, Found) or not reviews:
        return outcome, None
    failed = replace(outcome, attempt=consultation.attempt)
    return failed, (yield from Review(consultation, failed).seek_remedy())


def _is_same(now: Pod, before: Pod) -> bool:
    """Whether a pod is what its decision was begun for, in all that decisions read."""
    return now.spec == before.spec and now.labels == before.labels


def _describe_loss(ask: AskExtender, extender: Extender) -> str:
    url = extender.url(extender.verb(ask.verb))
    late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    return f'Post "{url}": {late}'
