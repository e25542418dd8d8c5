"""How many like members each row takes: kept from gang to gang, and caught up with changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Mask, Nodes, Rows
from mooring.cluster.changes import EVERYWHERE
from mooring.framework.attempt import PreFiltered
from mooring.framework.nominated import sees_only_counts
from mooring.framework.points import filter_rows, pre_filter
from mooring.framework.profile import Profile
from mooring.objects.pod import Pod
from mooring.objects.resources import PODS, Amounts
from mooring.plugins.node_resources_fit import NodeResourcesFit

Fits = NDArray[np.int64]

#: What pre-filters say of a pod, and which rows take it, if that is known for pods like it.
Look = Callable[[Pod], tuple[PreFiltered, Mask] | None]

# Beyond so many rows that changed, all are counted anew.
_MOST_CHANGED = 1_024


def count_fits(pod: Pod, profile: Profile, nodes: Nodes, look: Look | None = None) -> Fits | None:
    """Per row how many such pods it takes; None if they mind more than what is counted."""
    if not any(isinstance(each, NodeResourcesFit) for each in profile.filter):
        return None
    known = look(pod) if look is not None else None
    prepared = pre_filter(profile, pod, nodes) if known is None else known[0]
    if prepared.rejected is not None or prepared.node_names is not None:
        return None
    if not sees_only_counts(profile, pod, prepared, nodes):
        return None
    everything = nodes.everything
    if known is None:
        feasible = filter_rows(profile, pod, prepared, nodes, everything).feasible
    else:
        feasible = known[1][everything]
    # Where one is taken there is room for one, whatever else is left to others to count.
    return np.where(feasible, np.maximum(_find_room(pod.requests, nodes), 1), 0)


@dataclass(slots=True)
class _KeptRoom:
    """For how many pods with some requests rows had room, and when."""

    generation: int
    room: Fits


def _find_room(requests: Amounts, nodes: Nodes) -> Fits:
    """For how many pods with these requests each row has room, whoever else rejects them."""
    everything, changes = nodes.everything, nodes.changes
    if changes is None:
        # Rows that only would be have no log.
        return _count_room(requests, nodes, everything)

    def count_all() -> _KeptRoom:
        return _KeptRoom(changes.generation, _count_room(requests, nodes, everything))

    # It is forgotten when a node comes or goes, or gets other labels or taints.
    kept = nodes.derived.get(("room", requests, nodes.resources_version), count_all)
    changed = changes.since(kept.generation)
    if changed is None or EVERYWHERE in changed or len(changed) > _MOST_CHANGED:
        fresh = count_all()
        kept.generation, kept.room = fresh.generation, fresh.room
    elif changed:
        rows = np.fromiter(changed, np.intp, len(changed))
        kept.room[rows] = _count_room(requests, nodes, rows)
        kept.generation = changes.generation
    return kept.room


def _count_room(requests: Amounts, nodes: Nodes, rows: Rows) -> Fits:
    room = np.full(nodes.count(rows), np.iinfo(np.int32).max, np.int64)
    for name, amount in ((PODS, 1), *requests):
        place = nodes.resource(name)
        if place is not None and amount > 0:
            left = nodes.allocatable[place, rows] - nodes.requested[place, rows]
            np.minimum(room, left // amount, out=room)
    return room
