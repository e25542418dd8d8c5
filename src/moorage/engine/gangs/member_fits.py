"""Counts how many like members each row takes, kept from gang to gang and updated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Nodes, RowFacts, Rows
from moorage.cluster.row_view import RowView
from moorage.framework.attempt import PreFiltered
from moorage.framework.gang_points import CountRoom
from moorage.framework.nominated import sees_only_counts
from moorage.framework.points import filter_rows, pre_filter
from moorage.framework.profile import Profile, once_per_profile
from moorage.objects.pod import Pod
from moorage.objects.resources import PODS, Amounts

from .key_domains import DomainSums, split_by

Fits = NDArray[np.int64]


class KnownClass(Protocol):
    """The class of like pods, up to date."""

    @property
    def pre_filtered(self) -> PreFiltered:
        """What filters have prepared."""

    @property
    def keys(self) -> NDArray[np.int64]:
        """A number per row: above 0 for those that take such a pod."""

    @property
    def is_narrow(self) -> bool:
        """Whether the keys alone say where such a pod fits."""


#: What is known of pods like one; None if nothing is.
Look = Callable[[Pod], KnownClass | None]

# A row takes no more pods than this.
_MOST = int(np.iinfo(np.int32).max)


def count_fits(pod: Pod, profile: Profile, nodes: Nodes) -> Fits | None:
    """Returns how many such pods each row takes; None if they depend on more than counts."""
    if not _counts_resources(profile):
        return None
    prepared = pre_filter(profile, pod, nodes)
    if prepared.rejected is not None or prepared.node_names is not None:
        return None
    if not sees_only_counts(profile, pod, prepared, nodes):
        return None
    rows = nodes.everything
    feasible = filter_rows(profile, pod, prepared, nodes, rows).feasible
    return limit_fits(feasible, pod.requests, nodes, rows)


def sum_fits(pod: Pod, profile: Profile, nodes: Nodes, key: str, look: Look) -> Fits | None:
    """Returns how many such pods the rows of each domain of a label take, from their class.

    None if that is not known, or if they depend on more than counts.
    """
    known = find_class(pod, profile, nodes, look)
    return None if known is None else _find_kept(known.keys, pod.requests, nodes, key)


def find_class(pod: Pod, profile: Profile, nodes: Nodes, look: Look) -> KnownClass | None:
    """Returns the class of pods that depend on counts only; None if there is none."""
    known = look(pod) if _counts_resources(profile) else None
    if known is None or not known.is_narrow:
        return None
    return known if sees_only_counts(profile, pod, known.pre_filtered, nodes) else None


@once_per_profile
def _counts_resources(profile: Profile) -> bool:
    return any(isinstance(each, CountRoom) for each in profile.filter)


def _find_kept(keys: NDArray[np.int64], requests: Amounts, nodes: Nodes, key: str) -> Fits:
    """Returns how many pods the rows of each domain take, by sums that follow the rows."""
    asked = find_asked(requests, nodes)

    def make() -> DomainSums:
        # It holds the keys of the class, so that no other keys can have the same id. A row that
        # begins or ceases to fit is in the log.
        fits = RowView(
            nodes,
            Change.ALL,
            lambda rows: limit_fits(keys[rows] > 0, requests, nodes, rows),
            lambda row: count_on(nodes.facts(row), keys, asked),
        )
        return DomainSums(fits, split_by(key, nodes))

    # It is forgotten when a node comes or goes, or gets other labels or taints.
    like = key, requests, id(keys), nodes.resources_version
    return nodes.derived.get(("fits", *like), make).current()


def limit_fits(
    feasible: NDArray[np.bool_], requests: Amounts, nodes: Nodes, rows: Rows
) -> NDArray[np.int64]:
    """Returns how many such pods rows take, given which rows take one at all."""
    # Where one is taken there is room for one, whatever else is left to others to count.
    return np.where(feasible, np.maximum(_count_room(requests, nodes, rows), 1), 0)


def find_asked(requests: Amounts, nodes: Nodes) -> list[tuple[int, int]]:
    """Returns which resources a pod takes of a node, by position, and how much."""
    asked = ((nodes.resource(name), amount) for name, amount in ((PODS, 1), *requests))
    return [(place, amount) for place, amount in asked if place is not None and amount > 0]


def _count_room(requests: Amounts, nodes: Nodes, rows: Rows) -> Fits:
    """Returns for how many pods with these requests each row has room, if nothing else rejects."""
    room = np.full(nodes.count(rows), _MOST, np.int64)
    for place, amount in find_asked(requests, nodes):
        left = nodes.allocatable[place, rows] - nodes.requested[place, rows]
        np.minimum(room, left // amount, out=room)
    return room


def count_on(facts: RowFacts, keys: NDArray[np.int64], asked: Sequence[tuple[int, int]]) -> int:
    """Returns how many pods of a class one row takes; `asked` is what each takes of it."""
    if keys.item(facts.number) <= 0:
        return 0
    offered, requested, most = facts.allocatable, facts.requested, _MOST
    for place, amount in asked:
        room = (offered[place] - requested[place]) // amount
        if room < most:
            most = room
    return most if most > 1 else 1
