"""Chooses the best row for a pod by the answers of its class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Cluster
from moorage.engine.cycle import Window
from moorage.framework.attempt import Scored
from moorage.framework.nominated import find_refused_by_nominated
from moorage.framework.observe import SCORE, PointTimer
from moorage.framework.plugin import MAX_SCORE
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod

from .batch import DomainBatch, Turns
from .pod_class import PodClass
from .scores import MOST_KEY
from .statistics import DecisionPath

# Looked up once, because these are used for every pod.
_BATCH, _COLUMNS = DecisionPath.BATCH, DecisionPath.COLUMNS


class RowChoice:
    """The choice among rows for all classes of a profile, which share the order of visits."""

    def __init__(self, profile: Profile, cluster: Cluster, *, batches: bool) -> None:
        self._profile = profile
        self._observer = profile.observer
        self._cluster = cluster
        self._batches = batches
        self._visit: tuple[NDArray[np.intp], Turns] | None = None
        self._largest_total = MAX_SCORE * sum(weight for _, weight in profile.score)

    def forget(self) -> None:
        """Forgets the order of visits, because the state that it was found from is gone."""
        self._visit = None

    def list_feasible(self, kept: PodClass, pod: Pod) -> NDArray[np.intp]:
        """Returns the rows where a pod fits, with regard to nominated pods."""
        rows = kept.list_feasible()
        if self._cluster.nodes.nominations.are_there:
            rows = self._without_crowded(kept, pod, rows)
        return rows

    def choose(self, kept: PodClass, pod: Pod, window: Window) -> tuple[DecisionPath, int | None]:
        """Returns how the best row is found, and the row; None if there is none."""
        nodes, rows = self._cluster.nodes, window.rows
        if not nodes.nominations.are_there and kept.has_own_totals and self._batches:
            chosen = self._choose_ranked(kept, window)
            if chosen is not None:
                return chosen
        feasible = kept.list_feasible() if rows is None else kept.feasible_among(rows)
        if nodes.nominations.are_there:
            feasible = self._without_crowded(kept, pod, feasible)
        if len(feasible) <= 1:
            return _COLUMNS, int(feasible[0]) if len(feasible) else None
        turns = self._turns(window.start)
        with PointTimer(self._observer, SCORE, self._profile.name):
            # Rows are ranked only when they are asked about twice in succession. `_choose_ranked`
            # asks about the domain; asking about all rows in between would prevent its ranking.
            is_own = rows is not None and kept.has_own_totals
            ranking = None if is_own else self._rank_all(kept, turns)
            if ranking is None:
                return _COLUMNS, self._take_first(kept.scored(pod, feasible), turns)
            answers = kept.ask_relatively(pod, feasible)
            if rows is None and not nodes.nominations.are_there:
                row = kept.choose_by_level(answers, ranking)
                if row is not None:
                    return _COLUMNS, row
            added = kept.add_relatively(answers, feasible)
        is_everything = feasible is kept.scores.everything
        return _COLUMNS, ranking.best_with(added, None if is_everything else feasible)

    def _rank_all(self, kept: PodClass, turns: Turns) -> DomainBatch | None:
        """Returns a ranking of all rows by their own scores; None if no such ranking is kept.

        These are the scores that do not depend on other rows.
        """
        if not self._batches or self._largest_total * len(turns.turn_of) >= MOST_KEY // 2:
            return None
        return kept.scores.rank_among(kept.scores.everything, turns)

    def _take_first(self, scored: Scored, turns: Turns) -> int:
        """Returns the row with the highest total, of equal ones the first, as `first_best` does."""
        rows, of_row = scored.rows, turns.of_row
        count = len(of_row)
        if len(rows) == count and self._largest_total * count < MOST_KEY:
            # These are all rows, in order. One number per row contains total and turn, as in a
            # ranking. If many totals are equal, this is faster than finding all of the best.
            return rows.item((scored.totals * count - of_row).argmax())
        best = scored.best()
        return best.item(of_row[best].argmin() if len(best) > 1 else 0)

    def _choose_ranked(
        self, kept: PodClass, window: Window
    ) -> tuple[DecisionPath, int | None] | None:
        """Returns what `choose` does, by a ranking of rows; None if no ranking is worth making."""
        rows, visit, scores = window.rows, self._turns(window.start), kept.scores
        if rows is None and kept.is_ranked:
            return _BATCH, scores.best(visit)
        if rows is not None and not kept.is_ranked:
            return None
        ranking = scores.rank_among(scores.everything if rows is None else rows, visit)
        if ranking is None:
            return None
        if rows is None:
            return _COLUMNS, ranking.best_where(kept.feasible())
        return _BATCH, ranking.best()

    def _turns(self, start: int) -> Turns:
        """Returns the visit order from a start; all classes share it until a node comes or goes."""
        nodes = self._cluster.nodes
        order = nodes.order
        known = self._visit
        if known is None or known[0] is not order or known[1].start != start:
            turns = Turns.of(order, nodes.count(nodes.everything), start)
            known = self._visit = order, turns
        return known[1]

    def _without_crowded(
        self, kept: PodClass, pod: Pod, feasible: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Returns the feasible rows where the pod also fits beside the pods nominated to them."""
        crowded = find_refused_by_nominated(
            self._profile, pod, kept.newest_prepared(), self._cluster.nodes, feasible
        )
        if not len(crowded):
            return feasible
        refused = np.zeros(len(self._cluster.nodes.alive), np.bool_)
        refused[crowded] = True
        return feasible[~refused[feasible]]
