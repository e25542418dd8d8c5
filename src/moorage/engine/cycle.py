"""One scheduling cycle: the node for a pod, and why not the others. It changes nothing."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, Nodes, Rows
from moorage.framework.attempt import Failed, Filtered, PreFiltered, Scored
from moorage.framework.nominated import filter_with_nominated
from moorage.framework.observe import FILTER, PointTimer
from moorage.framework.points import pre_filter, rows_to_filter, score_rows
from moorage.framework.profile import Profile
from moorage.framework.status import BrokenRowsError
from moorage.objects.pod import Pod

# Below this many nodes, looking at fewer than all saves nothing.
_ALWAYS_LOOK_AT = 100

# Of a larger cluster, kube-scheduler looks for a smaller part.
_MOST_PERCENT, _LEAST_PERCENT, _NODES_PER_PERCENT = 50, 5, 125


class Found(msgspec.Struct, frozen=True, gc=False):
    """A node was found. `scored` is None if there was only one choice."""

    row: int
    pre_filtered: PreFiltered
    #: None where the answers for like pods were reused.
    filtered: Filtered | None
    scored: Scored | None = None
    nominated_path: bool = False
    #: The answer for the nominated node, if there is one.
    tried_first: Filtered | None = None


class Window(msgspec.Struct, frozen=True, gc=False):
    """Where the search for feasible nodes starts, and how many are enough."""

    start: int = 0
    #: None looks at all nodes.
    percentage: int | None = None
    #: Whether extenders choose among all nodes, even where no plugin scores them.
    is_extended: bool = False
    #: The only rows that there are to this decision, in ascending order; None is all of them.
    rows: NDArray[np.intp] | None = None

    @property
    def is_sample(self) -> bool:
        """Whether the search may stop before all nodes were looked at."""
        return 0 < (self.percentage or 0) < 100

    def count(self, nodes: Nodes) -> int:
        """Returns how many nodes this decision considers."""
        return len(nodes) if self.rows is None else len(self.rows)

    def limit(self, rows: Rows) -> Rows:
        """Returns those rows that this decision considers."""
        if self.rows is None:
            return rows
        return self.rows if isinstance(rows, slice) else np.intersect1d(rows, self.rows)

    def has(self, row: int) -> bool:
        return self.rows is None or row in self.rows


EVERY_NODE = Window()


def decide(profile: Profile, pod: Pod, nodes: Nodes, window: Window = EVERY_NODE) -> Found | Failed:
    """Finds the best node for a pod. Raises PluginError if the cycle cannot be completed."""
    return conclude(profile, pod, pre_filter(profile, pod, nodes), nodes, window)


def conclude(
    profile: Profile, pod: Pod, prepared: PreFiltered, nodes: Nodes, window: Window = EVERY_NODE
) -> Found | Failed:
    """Finds the best node for a pod, given the result of the pre-filters."""
    if prepared.rejected is not None:
        return Failed(prepared, None, window.count(nodes))
    nominated = try_nominated(profile, pod, prepared, nodes, window)
    if nominated is not None and nominated.feasible.all():
        row = int(nominated.rows[0])
        return Found(row, prepared, nominated, nominated_path=True, tried_first=nominated)

    try:
        filtered = find_feasible(profile, pod, prepared, nodes, nominated, window)
    except BrokenRowsError as error:
        # The first node that is visited ends the search.
        start = window.start if prepared.node_names is None else 0
        raise error.on(first_visited(np.array(error.rows), nodes, start)) from None
    filtered = limit(window, profile, filtered, nodes)
    feasible = filtered.feasible_rows
    if not len(feasible):
        return Failed(prepared, filtered, window.count(nodes), nominated)
    if len(feasible) == 1:
        return Found(int(feasible[0]), prepared, filtered, tried_first=nominated)
    scored = score_rows(profile, pod, nodes, feasible)
    row = first_best(scored, nodes, window.start)
    return Found(row, prepared, filtered, scored, tried_first=nominated)


def find_feasible(
    profile: Profile,
    pod: Pod,
    prepared: PreFiltered,
    nodes: Nodes,
    nominated: Filtered | None = None,
    window: Window = EVERY_NODE,
) -> Filtered:
    """Filters all nodes, or those that the pre-filters left; a nominated node keeps its answer."""
    rows = window.limit(rows_to_filter(prepared, nodes))
    with PointTimer(profile.observer, FILTER, profile.name):
        filtered = filter_with_nominated(profile, pod, prepared, nodes, rows)
    return filtered if nominated is None else filtered.replacing(nominated)


def try_nominated(
    profile: Profile, pod: Pod, prepared: PreFiltered, nodes: Nodes, window: Window = EVERY_NODE
) -> Filtered | None:
    """Returns the answer for the nominated node, which is looked at before all others."""
    name = nodes.nominations.node_of(pod)
    row = nodes.row(name) if name else None
    if row is None or not window.has(row):
        return None
    with PointTimer(profile.observer, FILTER, profile.name):
        return filter_with_nominated(profile, pod, prepared, nodes, np.array([row], np.intp))


def limit(window: Window, profile: Profile, filtered: Filtered, nodes: Nodes) -> Filtered:
    """Drops rows that a search which stops early would not have looked at."""
    enough = _enough(window, profile, len(filtered.rows))
    if enough is None or np.count_nonzero(filtered.feasible) <= enough:
        return filtered
    visited = visit(window, filtered.rows, nodes)
    found = np.cumsum(filtered.feasible[visited])
    seen = visited[: int(np.searchsorted(found, enough + 1))]
    passed: Mask = np.zeros(len(filtered.rows), np.bool_)
    passed[seen] = True
    return filtered.limited(passed)


def visit(window: Window, rows: NDArray[np.intp], nodes: Nodes) -> NDArray[np.intp]:
    """Returns the positions of rows, in the order in which a search looks at them."""
    position = np.full(len(nodes.alive), -1, np.intp)
    position[rows] = np.arange(len(rows))
    visited = position[nodes.order]
    return np.roll(visited[visited >= 0], -window.start)


def _enough(window: Window, profile: Profile, count: int) -> int | None:
    """Returns how many feasible nodes end the search; None means all."""
    if not profile.score and not window.is_extended:
        return 1
    if window.percentage is None or not window.is_sample or count < _ALWAYS_LOOK_AT:
        return None
    return max(count * window.percentage // 100, _ALWAYS_LOOK_AT)


def sample_size(count: int) -> int:
    """Returns how many feasible nodes kube-scheduler looks for, if no percentage is set."""
    if count < _ALWAYS_LOOK_AT:
        return count
    percentage = max(_MOST_PERCENT - count // _NODES_PER_PERCENT, _LEAST_PERCENT)
    return max(count * percentage // 100, _ALWAYS_LOOK_AT)


def first_visited(rows: NDArray[np.intp], nodes: Nodes, start: int) -> int:
    """Returns the row that comes first in the visit order from `start`."""
    turns = (nodes.ranks[rows] - start) % len(nodes)
    return int(rows[np.argmin(turns)])


def first_best(scored: Scored, nodes: Nodes, start: int) -> int:
    """Returns the row with the highest total; of equals the first in visit order from `start`."""
    best = scored.best()
    if len(best) == 1:
        return int(best[0])
    return first_visited(best, nodes, start)


def looked_at(outcome: Found | Failed, window: Window, profile: Profile) -> int:
    """Returns by how many nodes the next search starts later, if a search may stop early."""
    if outcome.filtered is None or (isinstance(outcome, Found) and outcome.nominated_path):
        return 0
    if _enough(window, profile, len(outcome.filtered.rows)) is None:
        return 0
    return int(np.count_nonzero(outcome.filtered.feasible)) + outcome.filtered.rejected_count
