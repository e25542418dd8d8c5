"""What plugins say about a pod whose decision waits for extenders; updated on return."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.cluster import BareNodes, Cluster, Nodes, Scope
from moorage.cluster.changes import Change
from moorage.cluster.row_view import Changed, LogReader
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
from moorage.framework.points import active_filters, pre_filter, score_rows
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod

Rows = NDArray[np.intp]

NO_ROWS: Rows = np.zeros(0, np.intp)

# The key of what is kept for as long as no node comes or goes.
_NAMES = "names of nodes"


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
        self._log = LogReader(cluster.changes)
        self._classes = classes
        self._window = window
        self._kept: PodClass | None = None
        #: By how many nodes the next search starts later.
        self.looked_at = 0
        self.pre_filtered = PreFiltered({})
        #: None where the answers of a class were used.
        self.filtered: Filtered | None = None
        self._is_filtered_now = False
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
        self._is_filtered_now = True
        self.pre_filtered = pre_filter(profile, pod, nodes)
        if self.pre_filtered.rejected is not None:
            self.filtered = None
            return NO_ROWS
        filtered = find_feasible(profile, pod, self.pre_filtered, nodes, self.tried_first)
        self.filtered = limit(self._window, profile, filtered, nodes)
        self.looked_at = looked_at(self.fail(), self._window, profile)
        visited = visit(self._window, self.filtered.rows, nodes)
        return self.filtered.rows[visited[self.filtered.feasible[visited]]]

    def split(self, rows: Rows) -> Iterator[tuple[Rows, tuple[str, ...]]]:
        """Yields rows with their names, in the portions in which kube-scheduler asks extenders.

        If a percentage is set, it has limited them already.
        """
        size = len(rows) if self._window.percentage else sample_size(len(self.nodes))
        if len(rows) > size:
            last = self.nodes.ranks[rows[size - 1]]
            self.looked_at = int(last - self._window.start) % len(self.nodes) + 1
        # Those of now, also when other nodes have the rows of later parts.
        known = self._row_names()
        for at in range(0, len(rows), size):
            part = rows[at : at + size]
            yield part, known.of(part)

    def fail(self) -> Failed:
        """Returns what is known as the failure of the pod."""
        return Failed(self.pre_filtered, self.filtered, len(self.nodes), self.tried_first)

    def look_again(self) -> Rows:
        """Looks at all rows to diagnose a failure; returns those that the plugins accept."""
        self._catch_up()
        if self.filtered is None or not self._is_filtered_now:
            return self._look_alone()
        return self.filtered.feasible_rows

    def names(self, rows: Rows) -> tuple[str, ...]:
        """Returns the names of many rows."""
        return self._row_names().of(rows)

    def _row_names(self) -> RowNames:
        nodes = self.nodes
        return nodes.derived.get(_NAMES, lambda: RowNames(nodes))

    # After an answer

    @property
    def is_current(self) -> bool:
        """Whether nothing has changed since."""
        return self._log.is_current

    def keep_fitting(self, rows: Rows, names: tuple[str, ...]) -> Rows:
        """Returns the rows that still take the pod, in order; only changed rows are asked about."""
        if self.is_current:
            return rows
        changed = self._catch_up()
        if changed is None or changed.everywhere & Change.MEMBERSHIP:
            # Another node may have the row by now.
            rows = self.nodes.find_rows(names)
            rows = rows[rows >= 0]
        if self._kept is not None and self._classes is not None:
            found = self._classes.find_feasible(self.pod, self._window, again=True)
            if found is not None:
                self._kept, fitting = found
                return self._keep(rows, fitting)
            self._kept = None
        is_of_rows = changed is not None and not changed.everywhere
        return self._recheck(rows, changed.rows if changed is not None and is_of_rows else None)

    def _keep(self, rows: Rows, kept: Rows) -> Rows:
        """Returns those of the rows, in their order, that are among others."""
        among = np.zeros(len(self.nodes.alive), np.bool_)
        among[kept] = True
        return rows[among[rows]]

    def _recheck(self, rows: Rows, changed: dict[int, int] | None) -> Rows:
        profile, pod, nodes = self.profile, self.pod, self.nodes
        self.pre_filtered = pre_filter(profile, pod, nodes)
        if self.pre_filtered.rejected is not None:
            return NO_ROWS
        if self.pre_filtered.node_names is not None:
            names = self.pre_filtered.node_names
            rows = rows[[name in names for name in nodes.names(rows.tolist())]]
        asked = rows
        if changed is not None and self._is_local():
            asked = rows[np.isin(rows, list(changed))]
        if not len(asked):
            return rows
        outcome = filter_with_nominated(profile, pod, self.pre_filtered, nodes, asked)
        return rows[~np.isin(rows, asked[~np.isin(asked, outcome.feasible_rows)])]

    def _is_local(self) -> bool:
        """Whether a change on one row does not affect others."""
        return not self.nodes.nominations.are_there and all(
            plugin.scope is Scope.ROW for plugin in active_filters(self.profile, self.pre_filtered)
        )

    def _catch_up(self) -> Changed | None:
        """Notes the state of the cluster that is looked at now; returns what changed before."""
        if not self._log.is_current:
            self._is_filtered_now = False
        return self._log.read()

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


class RowNames:
    """The names of nodes by row, for as long as no node comes or goes."""

    def __init__(self, nodes: Nodes) -> None:
        self._names = np.full(len(nodes.alive), "", np.object_)
        for row in nodes.rows.tolist():
            self._names[row] = nodes.name(row)
        #: What was asked for last: mostly one pod after the other fits the same rows.
        self._last: tuple[Rows, tuple[str, ...]] = NO_ROWS, ()

    def of(self, rows: Rows) -> tuple[str, ...]:
        if not np.array_equal(self._last[0], rows):
            self._last = rows, tuple(self._names[rows].tolist())
        return self._last[1]
