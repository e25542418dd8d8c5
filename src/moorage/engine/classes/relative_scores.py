"""The scores of a class whose numbers depend on which rows are feasible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Cluster, Rows, Scope
from moorage.cluster.changes import unite
from moorage.framework.calls import (
    ask_normalize,
    ask_pre_score,
    ask_score,
    ask_watch,
)
from moorage.framework.observe import SCORE, Caller, make_caller
from moorage.framework.plugin import Plugin, PreScore, Reduction, Score, Scores
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod

_ALWAYS = int(Change.ALL)


@dataclass(slots=True)
class RelativeScore:
    """A score plugin whose numbers depend on which rows are feasible. It is asked for every pod."""

    plugin: Score[Any]
    watch: int
    weight: int
    #: Whether the plugin prepares something for a pod.
    prepares: bool
    #: Whether it may add something for such pods.
    is_active: bool = True
    #: Whether it was not asked about the last pod, which fits nowhere.
    is_due: bool = False


class RelativeAnswer(NamedTuple):
    """What a relative score has prepared for a pod."""

    score: RelativeScore
    prepared: Any


def ignores_feasible_rows(plugin: Score[Any]) -> bool:
    """Returns whether a score plugin skips itself independently of which rows are feasible.

    A plugin that does not declare what it reads has not promised that.
    """
    return plugin.reads != Change.ALL


def is_kept(plugin: Score[Any]) -> bool:
    """Returns whether the raw numbers of a score plugin are kept for all pods of a class.

    They are kept if they do not depend on which rows are feasible.
    """
    if plugin.reduces is Reduction.NOTHING:
        is_own = True
    else:
        is_own = plugin.reduces is Reduction.LARGEST and plugin.scope is Scope.ROW
    return is_own and (ignores_feasible_rows(plugin) or not isinstance(plugin, PreScore))


class RelativeScores:
    """The relative scores of a class. They are asked for every pod."""

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self._observer = profile.observer
        self._cluster = cluster
        self._nodes = cluster.nodes
        self._scores: list[RelativeScore] = []
        #: The changes after which they are asked again.
        self.watch = 0
        #: Whether one of them may add something for the pod at hand.
        self.has_active = False

    def __iter__(self) -> Iterator[RelativeScore]:
        return iter(self._scores)

    def _look(self) -> None:
        """Notes what the scores watch, and whether any of them may add something."""
        self.watch = unite(_ALWAYS if each.is_due else each.watch for each in self._scores)
        self.has_active = any(each.is_active for each in self._scores)

    def add(self, plugin: Score[Any], weight: int, pod: Pod) -> None:
        """Adds a score, which is asked whether it may add something for a pod."""
        watch = ask_watch(plugin, pod, self._nodes)
        score = RelativeScore(plugin, watch, weight, isinstance(plugin, PreScore))
        score.is_active = self._may_add(score, pod)
        self._scores.append(score)
        self._look()

    def refresh(
        self, pod: Pod, union: int, unlike: Sequence[Plugin], *, fits_nowhere: bool
    ) -> None:
        """Asks the scores again that read such changes, or tell the pod from the last one."""
        for score in self._scores:
            is_unlike = score.is_due or score.plugin in unlike
            if score.watch & union or is_unlike:
                # No score is asked about a pod that fits nowhere.
                score.is_due = fits_nowhere
                if fits_nowhere:
                    continue
                score.watch = ask_watch(score.plugin, pod, self._nodes)
                # An active score is asked for every pod, and `ask` notes when it skips.
                stays = score.is_active and not is_unlike
                score.is_active = stays or self._may_add(score, pod)
        self._look()

    def _may_add(self, score: RelativeScore, pod: Pod) -> bool:
        """Returns whether a score may add something for such pods."""
        plugin: Any = score.plugin
        if not score.prepares or not ignores_feasible_rows(plugin):
            return True
        return ask_pre_score(plugin, pod, self._nodes, self._nodes.rows) is not None

    def ask(self, pod: Pod, feasible: NDArray[np.intp]) -> list[RelativeAnswer]:
        """Returns the answers of the active scores; one that skips itself becomes inactive."""
        answers: list[RelativeAnswer] = []
        for score in self._scores:
            if not score.is_active:
                continue
            plugin: Any = score.plugin
            prepared: Any = pod
            if score.prepares:
                prepared = ask_pre_score(plugin, pod, self._nodes, feasible)
            if prepared is not None:
                answers.append(RelativeAnswer(score, prepared))
            elif ignores_feasible_rows(plugin):
                score.is_active = False
                self._look()
        return answers

    def add_up(self, answers: Sequence[RelativeAnswer], rows: Rows, scale: int = 1) -> Scores:
        """Returns what the scores add to the totals of feasible rows, times a number."""
        added: Scores | None = None
        ask = make_caller(self._observer, SCORE)
        for answer in answers:
            numbers = self._find_numbers(answer, rows, ask, scale)
            added = numbers if added is None else added + numbers
        return np.zeros(self._nodes.count(rows), np.int64) if added is None else added

    def _find_numbers(self, answer: RelativeAnswer, rows: Rows, ask: Caller, scale: int) -> Scores:
        """Returns what one score adds to the totals of rows, times a number."""
        score, prepared = answer
        raw = ask_score(score.plugin, prepared, self._nodes, rows, ask)
        return ask_normalize(score.plugin, prepared, raw) * (score.weight * scale)
