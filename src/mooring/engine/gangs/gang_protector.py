"""Protection of a gang that starves: after a while, room is kept for it, for one gang at a time."""

from __future__ import annotations

from collections.abc import Callable

from mooring.cluster import Cluster
from mooring.cluster.kept_room import KeptRoom
from mooring.engine import actions
from mooring.engine.actions import Action, PodRef, RecordEvent
from mooring.framework.gang_points import ROOM_RELEASED, find_protection
from mooring.objects.pod_group import GroupKey
from mooring.queue.grouped_queue import GroupedQueue
from mooring.queue.queued_group import QueuedGroup

from .group_decision import GroupDecision
from .group_result import GroupCode
from .starvation import choose_room

# So many names are told.
_MOST_NAMES = 8

# After one gang was tried for it, others that starve are looked at so many seconds later.
_PAUSE = 1.0


class GangProtector:
    """Keeps room for the most important gang that has waited for long, where profiles say so."""

    def __init__(
        self, cluster: Cluster, queue: GroupedQueue, emit: Callable[[Action], None]
    ) -> None:
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
        """When the next gang has waited for long enough, if room can be kept for it then."""
        return self._next if self._refused and self._kept_room is None else None

    def consider(self, decision: GroupDecision, entry: QueuedGroup, now: float) -> None:
        """A gang was decided: room is kept for it from now on, or no longer."""
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
        """Ends what is kept for a gang that is gone, and looks for the next that starves."""
        kept = self._kept_room
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
            self._queue.hurry(key, now)
        times = [time for _, time in self._refused.values()]
        self._next = max(min(times, default=float("inf")), now + _PAUSE)

    def _wait(self, key: GroupKey, priority: int, due: float) -> None:
        self._refused[key] = -priority, due
        self._next = min(self._next, due)

    def _waits(self, key: GroupKey) -> bool:
        groups = self._cluster.groups
        group = groups.get(key)
        if group is None or self._queue.entry(key) is None:
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
