"""The scores of a class whose numbers depend on which rows are feasible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Cluster, Rows
from moorage.framework.calls import (
    ask_levels,
    ask_normalize,
    ask_pre_score,
    ask_score,
    ask_watch,
    find_occurring,
)
from moorage.framework.observe import SCORE, Caller, make_caller
from moorage.framework.plugin import Plugin, PreScore, Score, Scores
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod

from .batch import DomainBatch
from .parts import RelativeAnswer, RelativeScore, ignores_feasible_rows, may_find_levels
from .scores import ClassScores


class RelativeScores:
    """The relative scores of a class. They are asked for every pod."""

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self._observer = profile.observer
        self._cluster = cluster
        self._nodes = cluster.nodes
        self._scores: list[RelativeScore] = []

    def __iter__(self) -> Iterator[RelativeScore]:
        return iter(self._scores)

    def count_active(self) -> int:
        """Returns how many of the scores may add something for such pods."""
        return sum([score.is_active for score in self._scores])

    def add(self, plugin: Score[Any], watch: int, weight: int, pod: Pod) -> None:
        """Adds a score, which is asked whether it may add something for a pod."""
        prepares, levels = isinstance(plugin, PreScore), may_find_levels(plugin)
        score = RelativeScore(plugin, watch, weight, prepares, levels)
        score.is_active = self._may_add(score, pod)
        self._scores.append(score)

    def refresh(
        self, pod: Pod, union: int, unlike: Sequence[Plugin], *, fits_nowhere: bool
    ) -> bool:
        """Asks the scores again that read such changes, or tell the pod from the last one.

        Returns whether they watch the same as before, and the same of them are active.
        """
        is_same = True
        for score in self._scores:
            is_unlike = score.is_due or score.plugin in unlike
            if score.watch & union or is_unlike:
                # No score is asked about a pod that fits nowhere.
                score.is_due = fits_nowhere
                if fits_nowhere:
                    continue
                watched, was_active = score.watch, score.is_active
                score.watch = ask_watch(score.plugin, pod, self._nodes)
                # An active score is asked for every pod, and `ask` notes when it skips.
                stays = was_active and not is_unlike
                score.is_active = stays or self._may_add(score, pod)
                is_same &= score.watch == watched and score.is_active == was_active
        return is_same

    def _may_add(self, score: RelativeScore, pod: Pod) -> bool:
        """Returns whether a score may add something for such pods."""
        plugin: Any = score.plugin
        if not score.prepares or not ignores_feasible_rows(plugin):
            return True
        return ask_pre_score(plugin, pod, self._nodes, self._nodes.rows) is not None

    def ask(self, pod: Pod, feasible: NDArray[np.intp]) -> list[RelativeAnswer]:
        """Returns the answers of the active scores; one that skips itself becomes inactive."""
        answers: list[RelativeAnswer] = []
        ask = make_caller(self._observer, SCORE)
        for score in self._scores:
            if not score.is_active:
                continue
            plugin: Any = score.plugin
            prepared: Any = pod
            if score.prepares:
                prepared = ask_pre_score(plugin, pod, self._nodes, feasible)
            if prepared is not None:
                levels = (
                    ask_levels(plugin, prepared, self._nodes, ask) if score.has_levels else None
                )
                answers.append(RelativeAnswer(score, prepared, levels))
            elif ignores_feasible_rows(plugin):
                score.is_active = False
        return answers

    def add_up(self, answers: Sequence[RelativeAnswer], rows: Rows) -> Scores:
        """Returns what the scores add to the totals of feasible rows."""
        added: Scores | None = None
        ask = make_caller(self._observer, SCORE)
        for answer in answers:
            numbers = self._find_numbers(answer, rows, ask)
            added = numbers if added is None else added + numbers
        return np.zeros(self._nodes.count(rows), np.int64) if added is None else added

    def _find_numbers(self, answer: RelativeAnswer, rows: Rows, ask: Caller) -> Scores:
        """Returns what one score adds to the totals of rows."""
        score, prepared, levels = answer
        plugin, nodes = score.plugin, self._nodes
        if levels is None:
            raw = ask_score(plugin, prepared, nodes, rows, ask)
            return ask_normalize(plugin, prepared, raw) * score.weight
        # There are far fewer distinct numbers than rows, so only these are normalised.
        places = levels.places[rows]
        occurring = find_occurring(plugin, levels, places)
        numbers = np.zeros(len(levels.numbers), np.int64)
        normal = ask_normalize(plugin, prepared, levels.numbers[occurring])
        numbers[occurring] = normal * score.weight
        added: Scores = numbers.take(places)
        return added

    def choose_by_level(
        self, answers: Sequence[RelativeAnswer], scores: ClassScores, ranking: DomainBatch
    ) -> int | None:
        """Returns the best of all rows of a ranking; None if no ranking by levels is kept."""
        levels = answers[0].levels if len(answers) == 1 else None
        if levels is None or not levels.are_kept:
            return None
        score, prepared, _ = answers[0]
        ranked = scores.rank_levels(ranking, levels.places, self._cluster.changes)
        occurring = ranked.occurring
        if not 0 <= occurring.item(0) <= occurring.item(-1) < len(levels.numbers):
            return None
        normal = ask_normalize(score.plugin, prepared, levels.numbers[occurring])
        return ranked.best((normal * score.weight).tolist())
