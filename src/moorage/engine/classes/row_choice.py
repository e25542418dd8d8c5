"""Chooses the best row for a pod by the answers of its class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Cluster
from moorage.engine.cycle import Window
from moorage.framework.nominated import find_refused_by_nominated
from moorage.framework.observe import SCORE, PointTimer
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod

from .pod_class import PodClass
from .ranking import Turns
from .statistics import DecisionPath

# Looked up once, because these are used for every pod.
_BATCH, _COLUMNS = DecisionPath.BATCH, DecisionPath.COLUMNS


class RowChoice:
    """The choice among rows for all classes of a profile, which share the order of visits."""

    def __init__(self, profile: Profile, cluster: Cluster, *, batches: bool) -> None:
        self._profile = profile
        self._cluster = cluster
        self._batches = batches
        self._visit: tuple[NDArray[np.intp], Turns] | None = None

    def forget(self) -> None:
        """Forgets the order of visits, because the state that it was found from is gone."""
        self._visit = None

    def rank(self, kept: PodClass, window: Window) -> None:
        """Ranks the rows of a class; without batches, nothing of the last ranking is used."""
        if not self._batches:
            kept.ranking.is_summed = False
        kept.rank(self._turns(window.start))

    def list_feasible(
        self, kept: PodClass, pod: Pod, among: NDArray[np.intp] | None = None
    ) -> NDArray[np.intp]:
        """Returns the rows where a pod fits, or those of some, with regard to nominated pods."""
        rows = kept.list_feasible(among)
        if self._cluster.nodes.nominations.are_there:
            rows = self._without_crowded(kept, pod, rows)
        return rows

    def choose(self, kept: PodClass, pod: Pod, window: Window) -> tuple[DecisionPath, int | None]:
        """Returns how the best row is found, and the row; None if there is none."""
        self.rank(kept, window)
        is_ranked = kept.has_own_totals and not self._cluster.nodes.nominations.are_there
        is_ranked = is_ranked and not kept.is_rejected
        path = _BATCH if is_ranked and self._batches else _COLUMNS
        if is_ranked and window.rows is None:
            return path, kept.best()
        feasible = self.list_feasible(kept, pod, window.rows)
        if len(feasible) <= 1:
            return path, feasible.item(0) if len(feasible) else None
        with PointTimer(self._profile.observer, SCORE, self._profile.name):
            return path, kept.best_of(pod, feasible)

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
            self._profile, pod, kept.prepare_for(pod), self._cluster.nodes, feasible
        )
        if not len(crowded):
            return feasible
        refused = np.zeros(len(self._cluster.nodes.alive), np.bool_)
        refused[crowded] = True
        return feasible[~refused[feasible]]
