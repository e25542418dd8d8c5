"""Protects a gang that starves: keeps nodes for it where it lacks least, one gang at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Cluster, Nodes
from moorage.cluster.kept_room import KeptRoom
from moorage.engine import actions
from moorage.engine.actions import Action, PodRef, RecordEvent
from moorage.framework.gang_points import ROOM_RELEASED, CountRoom, find_protection
from moorage.framework.points import filter_rows, pre_filter
from moorage.framework.profile import Profile
from moorage.framework.status import PluginError
from moorage.objects.pod import Pod
from moorage.objects.pod_group import NEVER_EVICTS, GroupKey
from moorage.objects.resources import PODS
from moorage.queue import Gang, Queue

from . import topology
from .group_decision import GroupDecision
from .group_result import Domain, GroupCode, GroupStatus

# So many names are listed in events.
_MOST_NAMES = 8

# After one gang was tried for it, others that starve are looked at so many seconds later.
_PAUSE = 1.0


class GangProtector:
    """Keeps room for the most important gang that has waited for long, if profiles say so."""

    def __init__(self, cluster: Cluster, queue: Queue, emit: Callable[[Action], None]) -> None:
        self._cluster = cluster
        self._queue = queue
        self._emit = emit
        #: When each refused gang will have waited for long: minus its priority, and the time.
        self._refused: dict[GroupKey, tuple[int, float]] = {}
        self._next = float("inf")

    @property
    def _kept_room(self) -> KeptRoom | None:
        return self._cluster.nodes.kept_room

    def next_deadline(self) -> float | None:
        """Returns when the next gang has waited for long enough to get room."""
        return self._next if self._refused and self._kept_room is None else None

    def consider(self, decision: GroupDecision, entry: Gang, now: float) -> None:
        """Keeps room for a gang that was just decided, or stops keeping it."""
        group, key = decision.group, decision.group.group_key
        plugin = find_protection(decision.trial.profile)
        self._refused.pop(key, None)
        if plugin is None or not group.is_gang:
            return
        is_mine = self._kept_room is not None and self._kept_room.group == key
        if decision.status.code is GroupCode.SUCCESS:
            if is_mine:
                self._release(now)
            return
        if decision.status.code is not GroupCode.UNSCHEDULABLE or decision.is_waiting:
            return
        priority = group.priority_beside(decision.members[0])
        since = entry.timestamp if entry.initial_attempt is None else entry.initial_attempt
        due = since + plugin.after_seconds
        if now < due:
            self._wait(key, priority, due)
        elif is_mine or self._kept_room is None or self._kept_room.priority < priority:
            self._keep(decision, now)
        else:
            self._wait(key, priority, due)

    def look_after(self, now: float) -> None:
        """Releases the room of a gang that is gone, and looks for the next that starves."""
        kept = self._cluster.nodes.kept_room
        if kept is not None:
            if not self._waits(kept.group):
                self._release(now)
            return
        if now < self._next:
            return
        due = [(order, key) for key, order in self._refused.items() if order[1] <= now]
        if due:
            key = min(due)[1]
            del self._refused[key]
            self._queue.activate(key, now)
        times = [time for _, time in self._refused.values()]
        self._next = max(min(times, default=float("inf")), now + _PAUSE)

    def _wait(self, key: GroupKey, priority: int, due: float) -> None:
        self._refused[key] = -priority, due
        self._next = min(self._next, due)

    def _waits(self, key: GroupKey) -> bool:
        groups = self._cluster.groups
        group = groups.get(key)
        if group is None or not self._queue.is_queued(key):
            return False
        return groups.count(key) >= group.min_count

    def _keep(self, decision: GroupDecision, now: float) -> None:
        before = self._kept_room
        mine = before if before is not None and before.group == decision.group.group_key else None
        kept = choose_room(decision, mine)
        if kept == before:
            return
        if before is not None:
            self._release(now)
        if kept is None:
            return
        self._cluster.keep_room(kept)
        if mine is None:
            names = ", ".join(kept.nodes[:_MOST_NAMES])
            more = f" and {len(kept.nodes) - _MOST_NAMES} more" * (len(kept.nodes) > _MOST_NAMES)
            text = actions.truncate(f"Room is kept for it on {names}{more}")
            about = PodRef.to_group(decision.group)
            scheduler = decision.trial.profile.name
            self._emit(RecordEvent(about, "Normal", "GangProtected", "Scheduling", text, scheduler))

    def _release(self, now: float) -> None:
        self._cluster.keep_room(None)
        self._next = min(self._next, now)
        self._queue.wake(ROOM_RELEASED, None, None, now)


Counts = NDArray[np.int64]


def choose_room(decision: GroupDecision, known: KeptRoom | None) -> KeptRoom | None:
    """Returns the nodes to keep for a refused gang; None if it would not fit on empty nodes.

    `known` is what is kept for it already: it stays where it has begun to collect room.
    """
    group, nodes = decision.group, decision.trial.cluster.nodes
    running = len(nodes.groups.placed(group.group_key))
    domains = topology.find_domains(group, nodes)
    if isinstance(domains, GroupStatus):
        return None
    pod = _most_demanding(decision.members, nodes)
    try:
        free, whole = _count(pod, decision.trial.profile, nodes)
    except PluginError:
        return None
    rows = _choose_rows(domains, (free, whole), group.min_count - running, known, nodes)
    if rows is None:
        return None
    return KeptRoom(
        group.group_key,
        group.priority_beside(pod),
        group.policy_beside(pod) != NEVER_EVICTS,
        tuple(nodes.names(rows.tolist())),
    )


def _most_demanding(members: Sequence[Pod], nodes: Nodes) -> Pod:
    """Returns the member that needs the largest share of any node."""
    kinds = {id(pod.spec): pod for pod in members}
    return max(kinds.values(), key=lambda pod: _largest_share(pod, nodes))


def _largest_share(pod: Pod, nodes: Nodes) -> float:
    """Returns the largest share of any node's amount of a resource that a pod requests."""
    shares = [0.0]
    for name, amount in pod.requests:
        place = nodes.resource(name)
        if place is not None:
            shares.append(amount / max(1, int(nodes.allocatable[place].max())))
    return max(shares)


def _count(pod: Pod, profile: Profile, nodes: Nodes) -> tuple[Counts, Counts]:
    """Returns how many such pods each row takes now, and how many if it were empty."""
    everything = nodes.everything
    count = nodes.count(everything)
    free, whole = (np.full(count, np.iinfo(np.int32).max, np.int64) for _ in range(2))
    for name, amount in ((PODS, 1), *pod.requests):
        place = nodes.resource(name)
        if amount <= 0:
            continue
        if place is None:
            return np.zeros(count, np.int64), np.zeros(count, np.int64)
        allocatable = nodes.allocatable[place, everything]
        np.minimum(whole, allocatable // amount, out=whole)
        left = np.maximum(allocatable - nodes.requested[place, everything], 0)
        np.minimum(free, left // amount, out=free)
    usable = _find_usable(pod, profile, nodes)
    return np.where(usable, free, 0), np.where(usable, whole, 0)


def _find_usable(pod: Pod, profile: Profile, nodes: Nodes) -> NDArray[np.bool_]:
    """Returns the rows that are rejected for nothing but a lack of room."""
    prepared = pre_filter(profile, pod, nodes)
    usable = nodes.alive[nodes.everything].copy()
    if prepared.rejected is not None:
        usable[:] = False
        return usable
    if prepared.node_names is not None:
        usable[:] = False
        rows = nodes.find_rows(sorted(prepared.node_names))
        usable[rows[rows >= 0]] = True
    filtered = filter_rows(profile, pod, prepared, nodes, nodes.everything)
    for layer in filtered.layers:
        if not isinstance(profile.plugins[layer.plugin], CountRoom):
            usable[filtered.rows[layer.decided]] = False
    return usable


def _choose_rows(
    domains: Sequence[Domain],
    counts: tuple[Counts, Counts],
    needed: int,
    known: KeptRoom | None,
    nodes: Nodes,
) -> NDArray[np.intp] | None:
    """Returns the rows of the domain that lacks least, no more than the gang needs."""
    free, whole = counts
    before = nodes.find_rows(known.nodes if known is not None else ())
    best: tuple[tuple[int, int], NDArray[np.intp]] | None = None
    for domain in domains:
        rows = nodes.rows if domain.rows is None else domain.rows
        rows = rows[whole[rows] > 0]
        if int(whole[rows].sum()) < needed:
            continue
        is_known = np.isin(rows, before)
        order = rows[np.lexsort((rows, -whole[rows], -free[rows], ~is_known))]
        enough = int(np.searchsorted(np.cumsum(whole[order]), needed)) + 1
        quality = int(is_known.any()), min(needed, int(free[order[:enough]].sum()))
        if best is None or quality > best[0]:
            best = quality, order[:enough]
    return None if best is None else best[1]
