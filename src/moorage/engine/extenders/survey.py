"""What plugins say about a pod whose decision waits for extenders; updated on return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.cluster import BareNodes, Cluster, Nodes
from moorage.engine.classes.classes import Classes
from moorage.engine.classes.pod_class import PodClass
from moorage.engine.cycle import (
    Window,
    find_feasible,
    limit,
    looked_at,
    sample_size,
    try_nominated,
    visit,
)
from moorage.framework.attempt import Failed, Filtered, PreFiltered, Scored
from moorage.framework.nominated import filter_with_nominated
from moorage.framework.points import pre_filter, rows_to_filter, score_rows
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod

Rows = NDArray[np.intp]

NO_ROWS: Rows = np.zeros(0, np.intp)


class Overtaken(Exception):
    """The cluster changed while an extender was asked, so that its answer is of no use."""


class PodSurvey:
    """One pod, and the rows that its plugins accept. Classes are optional."""

    def __init__(
        self,
        profile: Profile,
        pod: Pod,
        cluster: Cluster,
        classes: Classes | None,
        window: Window,
    ) -> None:
        self.profile = profile
        self.pod = pod
        self.nodes: Nodes = cluster.nodes
        self._log = cluster.changes
        # The state of the cluster that was looked at last.
        self._generation = self._log.generation
        self._classes = classes
        self._window = window
        self._kept: PodClass | None = None
        #: By how many nodes the next search starts later.
        self.looked_at = 0
        self.pre_filtered = PreFiltered({})
        #: None where the answers of a class were used.
        self.filtered: Filtered | None = None
        #: The answer for the nominated node, if there is one.
        self.tried_first: Filtered | None = None

    # The first look

    def try_nominated(self) -> Filtered | None:
        """Returns the plugins' answer for the nominated node, if there is one."""
        name = self.nodes.nominations.node_of(self.pod)
        if not name or self.nodes.row(name) is None:
            return None
        self._catch_up()
        self.pre_filtered = pre_filter(self.profile, self.pod, self.nodes)
        if self.pre_filtered.rejected is None:
            self.tried_first = try_nominated(self.profile, self.pod, self.pre_filtered, self.nodes)
        return self.tried_first

    def look(self) -> Rows:
        """Returns the rows that plugins accept, in visit order."""
        self._catch_up()
        found = (
            None if self._classes is None else self._classes.find_feasible(self.pod, self._window)
        )
        if found is not None and len(found[1]):
            self._kept, rows = found
            self.pre_filtered, self.filtered = self._kept.pre_filtered, None
            return self._keep(np.roll(self.nodes.order, -self._window.start), rows)
        self._kept = None
        return self._look_alone()

    def _look_alone(self) -> Rows:
        profile, pod, nodes = self.profile, self.pod, self.nodes
        self.pre_filtered = pre_filter(profile, pod, nodes)
        if self.pre_filtered.rejected is not None:
            self.filtered = None
            return NO_ROWS
        filtered = find_feasible(profile, pod, self.pre_filtered, nodes, self.tried_first)
        self.filtered = limit(self._window, profile, filtered, nodes)
        self.looked_at = looked_at(self.fail(), self._window, profile)
        visited = visit(self._window, self.filtered.rows, nodes)
        return self.filtered.rows[visited[self.filtered.feasible[visited]]]

    def split(self, rows: Rows) -> Iterator[Rows]:
        """Yields rows in the portions in which kube-scheduler asks extenders.

        If a percentage is set, it has limited them already. Raises Overtaken if nodes have come or
        gone before the last portion.
        """
        nodes, order = self.nodes, self.nodes.order
        size = len(rows) if self._window.percentage else sample_size(len(nodes))
        if len(rows) > size:
            last = nodes.ranks[rows[size - 1]]
            self.looked_at = int(last - self._window.start) % len(nodes) + 1
        for at in range(0, len(rows), size):
            if nodes.order is not order:
                raise Overtaken
            yield rows[at : at + size]

    def fail(self) -> Failed:
        """Returns what is known as the failure of the pod."""
        return Failed(self.pre_filtered, self.filtered, len(self.nodes), self.tried_first)

    def look_again(self) -> Rows:
        """Looks at all rows to diagnose a failure; returns those that the plugins accept."""
        self._catch_up()
        return self._look_alone() if self.filtered is None else self.filtered.feasible_rows

    def names(self, rows: Rows) -> tuple[str, ...]:
        """Returns the names of the nodes of rows."""
        return tuple(self.nodes.names(rows.tolist()))

    # After an answer

    @property
    def is_current(self) -> bool:
        """Whether nothing has changed since."""
        return self._generation == self._log.generation

    def find_fitting(self, names: Sequence[str]) -> Rows:
        """Returns the rows of those nodes that still take the pod, in the same order."""
        rows = self.nodes.find_rows(names)
        if self.is_current:
            return rows
        self._catch_up()
        rows = rows[rows >= 0]
        if self._kept is not None and self._classes is not None:
            found = self._classes.find_feasible(self.pod, self._window, again=True)
            if found is not None:
                self._kept, fitting = found
                return self._keep(rows, fitting)
            self._kept = None
        profile, pod, nodes = self.profile, self.pod, self.nodes
        self.pre_filtered = pre_filter(profile, pod, nodes)
        if self.pre_filtered.rejected is not None:
            return NO_ROWS
        asked = Window(rows=np.sort(rows)).limit(rows_to_filter(self.pre_filtered, nodes))
        outcome = filter_with_nominated(profile, pod, self.pre_filtered, nodes, asked)
        return self._keep(rows, outcome.feasible_rows)

    def _keep(self, rows: Rows, kept: Rows) -> Rows:
        """Returns those of the rows, in their order, that are among others."""
        among = np.zeros(len(self.nodes.alive), np.bool_)
        among[kept] = True
        return rows[among[rows]]

    def _catch_up(self) -> None:
        """Notes the state of the cluster that is looked at now."""
        if not self.is_current:
            self.filtered = None
            self._generation = self._log.generation

    # Scores

    def score(self, rows: Rows, *, bare: bool) -> Scored:
        """Returns the scores of rows; `bare` rows as if nothing ran there."""
        if not self.profile.score:
            return Scored(rows, {}, np.zeros(len(rows), np.int64))
        if self._kept is not None and not bare:
            return self._kept.scored(self.pod, rows)
        # Plugins get rows by their number.
        order = np.argsort(rows)
        nodes = BareNodes(self.nodes) if bare else self.nodes
        scored = score_rows(self.profile, self.pod, nodes, rows[order])
        back = np.argsort(order)
        by_plugin = {name: scores[back] for name, scores in scored.by_plugin.items()}
        return Scored(rows, by_plugin, scored.totals[back])

    def refuse(self, refused: Filtered, dropped: Rows) -> Failed:
        """Returns the failure, with the extenders' refusals in place of the plugins' answers."""
        assert self.filtered is not None, "plugins were not asked about all rows"
        before = frozenset(self.filtered.rejectors())
        filtered = self.filtered.without(dropped).replacing(refused)
        return replace(
            self.fail(), filtered=filtered, overruled=before - frozenset(filtered.rejectors())
        )
