"""One decision in which extenders take part: their questions, in order, and what follows.

A decision is a generator. It yields questions, is sent the answers, and returns the decision. So
its caller can do other things until the answers come.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.config import Extender
from moorage.engine.actions import AskExtender, PodRef
from moorage.engine.cycle import Found
from moorage.engine.events import ExtenderAnswered
from moorage.engine.extender_answers import FilterAnswer, NodeVictims, PrioritizeAnswer
from moorage.framework.attempt import Failed, Filtered, Layer, Scored
from moorage.framework.status import Code, PluginError, Reason
from moorage.framework.verdict import Verdict
from moorage.objects.pod import Pod

from .questions import FILTER, PRIORITIZE
from .survey import Overtaken, PodSurvey, Rows

_T = TypeVar("_T")

#: Names of nodes.
Names = tuple[str, ...]

#: Questions out, answers in, in the same order; a result in the end.
Steps = Generator[tuple[AskExtender, ...], tuple[ExtenderAnswered, ...], _T]

#: The plugin that rejections of extenders are put down to. Any event may lift them.
EXTENDER = "Extender"

# What an extender says is cut after so many characters.
_MOST_TEXT = 4096

#: Extenders score from 0 to 10, plugins from 0 to 100.
_PER_POINT = 10


def find_interested(extenders: Sequence[Extender], pod: Pod) -> tuple[tuple[int, Extender], ...]:
    """Returns the extenders that take part in decisions about a pod, with their positions."""
    return tuple((place, each) for place, each in enumerate(extenders) if each.concerns(pod.spec))


class ExtenderFailed(PluginError):
    """An extender that must not be ignored gave no usable answer."""


class Consultation:
    """The decision about one pod, with the extenders that take part in it."""

    def __init__(
        self,
        survey: PodSurvey,
        extenders: Sequence[tuple[int, Extender]],
        attempt: int,
        *,
        keep_pods: bool = False,
        rechecks: bool = True,
    ) -> None:
        """Extenders come with their position in the configuration, in the order of being asked.

        With `rechecks`, rows that no longer take the pod when an answer comes are left out.
        """
        self.survey = survey
        self.extenders = extenders
        self.attempt = attempt
        self._keep_pods = keep_pods
        self._rechecks = rechecks
        self._asked = 0
        #: Whether the rows that are left came back from an extender as objects.
        self.bare = False
        #: The nodes that the first of them was asked about, perhaps in several parts.
        self._offered: Names = ()
        #: What extenders have against nodes, by name.
        self._refusals: dict[str, Reason] = {}
        #: What extenders have scored, weighed: per URL prefix the rows and the numbers.
        self.scores: dict[str, tuple[Rows, NDArray[np.int64]]] = {}

    # Asking

    def ask(
        self,
        extender: int,
        verb: str,
        nodes: Names = (),
        victims: dict[str, NodeVictims] | None = None,
    ) -> AskExtender:
        """Makes a question about the pod."""
        number, self._asked = self._asked, self._asked + 1
        pod = PodRef.to(self.survey.pod)
        return AskExtender(pod, self.attempt, number, extender, verb, nodes, victims or {})

    def decide(self) -> Steps[Found | Failed]:
        """Finds the best node. Raises PluginError or Overtaken if that is not possible."""
        tried = self.survey.try_nominated()
        if tried is not None and tried.feasible.all():
            found = yield from self._try_nominated(tried)
            if found is not None:
                return found
        rows = self.survey.look()
        if not len(rows):
            return self.survey.fail()
        for part in self.survey.split(rows):
            left = yield from self.filter(part)
            if len(left) == 1:
                return self._find(self.survey.nodes.find_rows(left).item())
            if left:
                return (yield from self.choose(left))
        return self._fail()

    def _find(self, row: int, scored: Scored | None = None) -> Found:
        survey = self.survey
        filtered = survey.filtered and survey.filtered.replacing(self._gather_refusals())
        return Found(row, survey.pre_filtered, filtered, scored, tried_first=survey.tried_first)

    # Filter

    def _try_nominated(self, tried: Filtered) -> Steps[Found | None]:
        try:
            left = yield from self.filter(tried.rows)
        except ExtenderFailed:
            # All nodes are looked at instead, and the extender is asked again.
            left = ()
        if left:
            survey = self.survey
            row = survey.nodes.find_rows(left).item()
            return Found(row, survey.pre_filtered, tried, None, True, tried)
        self.bare = False
        return None

    def filter(self, rows: Rows) -> Steps[Names]:
        """Asks one extender after the other which of the nodes suit; returns the names of these."""
        names = self.survey.names(rows)
        self._offered += names
        for place, extender in self.extenders:
            if not extender.filter_verb or not names:
                continue
            (answered,) = yield (self.ask(place, FILTER, names),)
            try:
                names = self._take_filter(extender, answered, names)
            except ExtenderFailed:
                if not extender.ignorable:
                    raise
            if names and self._rechecks:
                fitting = self._find_fitting(names)
                names = names if len(fitting) == len(names) else self.survey.names(fitting)
        return names

    def _find_fitting(self, names: Names) -> Rows:
        """Returns the rows of nodes that still take the pod; raises Overtaken if none does."""
        rows = self.survey.find_fitting(names)
        if not len(rows):
            raise Overtaken
        return rows

    def _take_filter(self, extender: Extender, answered: ExtenderAnswered, names: Names) -> Names:
        answer = answered.answer
        if not isinstance(answer, FilterAnswer):
            raise ExtenderFailed(answered.failure)
        if answer.error:
            raise ExtenderFailed(_shorten(answer.error))
        kept: Names = ()
        bare = False
        if extender.node_cache_capable and answer.node_names is not None:
            kept = answer.node_names
        elif answer.nodes is not None:
            kept, bare = answer.nodes, not self._keep_pods
        asked = frozenset(names)
        strange = next((name for name in kept if name not in asked), None)
        if strange is not None:
            claim = f'extender "{extender.url_prefix}" claims a filtered node "{strange}"'
            raise ExtenderFailed(f"{claim} which is not found in the input node list")
        self.bare = self.bare or bare
        for refused, code in (
            (answer.failed, Code.UNSCHEDULABLE),
            (answer.unresolvable, Code.UNRESOLVABLE),
        ):
            self._refusals.update(
                (name, Reason(_shorten(text), code)) for name, text in refused.items()
            )
        return tuple(dict.fromkeys(kept))

    def _fail(self) -> Failed:
        """Makes the failure of a pod whose last nodes extenders rejected; any event may help it."""
        fitting = self.survey.look_again()
        if not len(fitting):
            # By now not even the plugins accept a node.
            return self.survey.fail()
        if not set(self._offered).issuperset(self.survey.names(fitting)):
            raise Overtaken
        failed = self.survey.refuse(self._gather_refusals(), fitting)
        return replace(failed, overruled=failed.overruled | {EXTENDER})

    def _gather_refusals(self) -> Filtered:
        """Returns the extenders' refusals of nodes, as rows."""
        nodes = self.survey.nodes
        by_row = {nodes.row(name): reason for name, reason in self._refusals.items()}
        known = {row: reason for row, reason in by_row.items() if row is not None}
        # An extender may have another reason for each node.
        places = {reason: at for at, reason in enumerate(dict.fromkeys(known.values()))}
        rows = np.array(list(known), np.intp)
        failed = np.zeros((len(places), len(rows)), np.bool_)
        failed[[places[reason] for reason in known.values()], np.arange(len(rows))] = True
        reasons = tuple(places)
        decided = np.ones(len(rows), np.bool_)
        return Filtered(rows, ~decided, (Layer(EXTENDER, Verdict(reasons, failed), decided),))

    # Prioritize

    def choose(self, names: Names) -> Steps[Found]:
        """Scores the nodes, asks all extenders at once to score them, and takes the best."""
        survey = self.survey
        rows = survey.nodes.find_rows(names)
        scored = survey.score(rows, bare=self.bare)
        scoring = [each for each in self.extenders if each[1].prioritize_verb]
        answers: tuple[ExtenderAnswered, ...] = ()
        if scoring:
            answers = yield tuple(self.ask(place, PRIORITIZE, names) for place, _ in scoring)
            if not survey.is_current:
                rows = self._find_fitting(names)
                scored = survey.score(rows, bare=self.bare)
        for _, extender in self.extenders:
            if not extender.prioritize_verb:
                # It counts as one that likes all nodes alike.
                self.scores[extender.url_prefix] = rows, np.zeros(len(rows), np.int64)
        for (_, extender), answered in zip(scoring, answers, strict=True):
            self._take_scores(extender, answered, rows)
        return self._take_best(scored)

    def _take_scores(self, extender: Extender, answered: ExtenderAnswered, rows: Rows) -> None:
        answer = answered.answer
        if not isinstance(answer, PrioritizeAnswer):
            return
        nodes = self.survey.nodes
        hosts = nodes.find_rows(answer.hosts)
        # As in Go, what is too large wraps around.
        scores = np.array(answer.scores, np.int64) * np.int64(extender.weight) * _PER_POINT
        # One place more than there are rows, for hosts that are unknown.
        is_left = np.zeros(len(nodes.alive) + 1, np.bool_)
        is_left[rows] = True
        among = is_left[hosts]
        self.scores[extender.url_prefix] = hosts[among], scores[among]

    def _take_best(self, scored: Scored) -> Found:
        """Returns the row with the highest total; a row without an extender's score loses ties.

        kube-scheduler breaks other ties at random; here the first that is visited wins.
        """
        rows, totals = scored.rows, scored.totals.copy()
        position = np.zeros(len(self.survey.nodes.alive), np.intp)
        position[rows] = np.arange(len(rows))
        liked = np.zeros(len(rows), np.bool_)
        for hosts, scores in self.scores.values():
            np.add.at(totals, position[hosts], scores)
            liked[position[hosts]] = True
        best = np.flatnonzero(totals == totals.max())
        first = best[np.argmax(liked[best])]
        return self._find(int(rows[first]), Scored(rows, scored.by_plugin, totals))


def _shorten(text: str) -> str:
    """Cuts a text to a length that suits a condition, which people read."""
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} ..."
