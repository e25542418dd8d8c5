"""The queue where pods may belong to groups: an entry is a pod, or all waiting pods of a group.

A pod whose group is not known is kept aside. A pod that comes while its group is in flight waits
until the group returns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from moorage.cluster.pod_groups import KnownGroups
from moorage.framework.status import Rejected
from moorage.framework.wakeups import ClusterEvent
from moorage.objects.pod import Pod
from moorage.objects.pod_group import GroupKey, PodGroup

from .group_backoff import GroupBackoff, GroupReturn
from .group_members import GroupMembers
from .object_events import (
    ASSIGNED_POD_ADD,
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_UPDATE,
    pod_events,
)
from .queue import MAX_IN_UNSCHEDULABLE, Queue
from .queue_events import WakeAnswer
from .queued_group import QueuedGroup, head_of
from .queued_pod import (
    ACTIVE,
    GATED,
    IN_FLIGHT,
    QUEUES,
    FailedAttempt,
    Place,
    QueuedPod,
)

_GROUP_CHANGE = "PodGroupUpdate"

# What metrics call the places.
_SIZES = {
    Place.ACTIVE: "active",
    Place.BACKOFF: "backoff",
    Place.ERROR_BACKOFF: "backoff",
    Place.GATED: "gated",
    Place.UNSCHEDULABLE: "unschedulable",
}

#: Asks what holds a group of a scheduler back, apart from its members: None, or the name of the
#: plugin that says no, and why.
HoldGroup = Callable[[GroupKey, str], tuple[str, Rejected] | None]


class GroupedQueue(Queue):
    """A queue of pods and groups of pods."""

    __slots__ = (
        "_group_backoff",
        "_groups",
        "_hold_group",
        "_incoming_groups",
        "_incoming_members",
        "_members",
    )

    def __init__(self, groups: KnownGroups, hold_group: HoldGroup, **settings: Any) -> None:
        super().__init__(**settings)
        self._groups = groups
        self._hold_group = hold_group
        self._members = GroupMembers()
        self._group_backoff = GroupBackoff(self.backoff)
        #: How many groups came into each queue, and how many pods with them, as `incoming`.
        self._incoming_groups: Counter[tuple[str, str]] = Counter()
        self._incoming_members: Counter[tuple[str, str]] = Counter()

    # What waits

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, uid: str) -> bool:
        return uid in self._members or super().__contains__(uid)

    def __iter__(self) -> Iterator[QueuedPod]:
        for queued in self._places:
            if isinstance(queued, QueuedGroup):
                yield from queued.everyone()
            else:
                yield queued
        for entry in self._members.entries.values():
            if self._is_held(entry):
                yield from entry.everyone()
        yield from self._members.get_aside()

    def get(self, uid: str) -> QueuedPod | None:
        if uid not in self._members:
            return super().get(uid)
        member, entry = self._members.find(uid)
        if entry is not None:
            if entry.place is IN_FLIGHT:
                return None
            member.place = entry.place
        return member

    @property
    def in_flight(self) -> tuple[QueuedPod, ...]:
        flying: list[QueuedPod] = []
        for queued in self._in_flight:
            if isinstance(queued, QueuedGroup):
                flying += queued.everyone()
            else:
                flying.append(queued)
        return tuple(flying)

    def entry(self, key: GroupKey) -> QueuedGroup | None:
        """Returns the entry of a group that has pods waiting or in flight."""
        return self._members.entries.get(key)

    def sizes(self) -> dict[str, int]:
        """Counts waiting pods by the queues of kube-scheduler's metrics."""
        sizes = super().sizes()
        pending = 0
        for entry in self._members.entries.values():
            pending += len(entry.late)
            if self._is_held(entry):
                sizes["gated"] += len(entry.members)
            elif entry.place in _SIZES:
                # As an entry it is counted once.
                sizes[_SIZES[entry.place]] += len(entry.members) - 1
        sizes["incomplete"] = sum(1 for _ in self._members.get_aside())
        sizes["pending"] = pending
        return sizes

    def entities(self) -> Iterator[tuple[tuple[str, str], int]]:
        held = sum(map(self._is_held, self._members.entries.values()))
        groups = Counter(
            _SIZES[entry.place] for entry in self._members.entries.values() if entry.place in _SIZES
        )
        for (queue, kind), count in super().entities():
            filed = groups[queue] - (held if queue == "gated" else 0)
            yield (queue, kind), count - filed
            yield (queue, "podgroup"), groups[queue]

    def incoming_entities(self) -> Iterator[tuple[tuple[str, str, str], int]]:
        for (queue, event, kind), count in super().incoming_entities():
            members = self._incoming_members[queue, event]
            if count > members:
                yield (queue, event, kind), count - members
        for key, count in self._incoming_groups.items():
            yield (*key, "podgroup"), count

    def _move(self, queued: QueuedPod, place: Place, label: str) -> None:
        super()._move(queued, place, label)
        if isinstance(queued, QueuedGroup):
            self._count_group(queued, place, label)
            # As an entry it was counted once.
            self.incoming[QUEUES[place], label] -= 1

    def _count_group(self, entry: QueuedGroup, place: Place, label: str) -> None:
        self._incoming_groups[QUEUES[place], label] += 1
        self._count_incoming(place, label, len(entry.members))

    def _count_incoming(self, place: Place, label: str, members: int) -> None:
        key = QUEUES[place], label
        self._incoming_members[key] += members
        self.incoming[key] += members

    def check(self) -> None:
        super().check()
        self._members.check()
        for key, entry in self._members.entries.items():
            is_flying = entry.pod.uid in self._in_flight
            is_waiting = entry.pod.uid in self._places or self._is_held(entry)
            assert is_flying != is_waiting, f"{key} is in no place, or two"
            assert entry.members or is_flying, f"{key} waits without members"

    # Pods come, change and go

    def add(self, pod: Pod, now: float) -> None:
        key = self._groups.key_of(pod)
        if key is None:
            super().add(pod, now)
        elif pod.uid in self._members:
            self._update_member(pod, pod, now)
        else:
            self._enter_member(QueuedPod(pod, now, next(self._arrivals)), key, now)

    def update(self, old: Pod, new: Pod, now: float) -> None:
        key = self._groups.key_of(new)
        known = self._members.key_of(new.uid)
        if key == known is None:
            super().update(old, new, now)
        elif key == known:
            self._update_member(old, new, now)
        else:
            # It names another group than before.
            self.delete(old)
            self.add(new, now)

    def delete(self, pod: Pod) -> None:
        if pod.uid not in self._members:
            super().delete(pod)
            return
        entry = self._members.remove(pod.uid)
        if entry is not None and not entry.members and entry.place is not IN_FLIGHT:
            self._drop(entry)

    def _enter_member(self, member: QueuedPod, key: GroupKey, now: float) -> None:
        pod = member.pod
        self._members.note_group(pod.uid, key)
        entry = self._members.entries.get(key)
        if entry is not None and entry.place is not IN_FLIGHT:
            # Where it waits, its group is known.
            entry.join(member)
            self._look_again(entry, member, UNSCHEDULED_POD_ADD.label, now)
            return
        group = self._groups.get(key)
        if group is None:
            self._members.set_aside(key, (member,))
        elif entry is None:
            entry = QueuedGroup(
                head_of(group, pod), member.timestamp, next(self._arrivals), key=key
            )
            self._members.entries[key] = entry
            entry.join(member)
            self._make_active(entry, UNSCHEDULED_POD_ADD.label, now)
        else:
            entry.late[pod.uid] = member

    def _update_member(self, old: Pod, new: Pod, now: float) -> None:
        member, entry = self._members.find(new.uid)
        member.pod = new
        if entry is None or entry.place is IN_FLIGHT:
            return
        if UNSCHEDULED_POD_UPDATE not in pod_events(old, new, assigned=False):
            # It asks for something else now.
            entry.refused_at = None
        if entry.place is GATED and not self._may_help(entry, old, new):
            return
        self._look_again(entry, member, UNSCHEDULED_POD_UPDATE.label, now)

    # Groups come, change and go

    def put_group(self, before: PodGroup | None, group: PodGroup, now: float) -> None:
        """Takes in a new or changed group."""
        key = group.group_key
        for member in self._members.take_aside(key):
            self._enter_member(member, key, now)
        entry = self._members.entries.get(key)
        if entry is None or entry.place is IN_FLIGHT:
            return
        if before is None or not group.asks_as(before):
            entry.refused_at = None
        head = head_of(group, next(iter(entry.members.values())).pod)
        if self._is_held(entry):
            entry.replace(head)
        elif head.priority != entry.pod.priority:
            entry.replace(head)
            self._places.refresh(entry)
        if entry.place is GATED:
            self._make_active(entry, _GROUP_CHANGE, now)

    def remove_group(self, key: GroupKey) -> None:
        """Removes a group: its pods wait until it exists again."""
        entry = self._members.entries.get(key)
        if entry is None or entry.place is IN_FLIGHT:
            return
        members = [*entry.members.values(), *entry.late.values()]
        self._drop(entry)
        self._members.set_aside(key, members)

    def look_again(self, key: GroupKey, now: float) -> None:
        """Checks whether a group that is held back may be tried, now that a member has a node."""
        entry = self._members.entries.get(key)
        if entry is not None and entry.place is GATED:
            self._make_active(entry, _GROUP_CHANGE, now)

    def activate_group(self, key: GroupKey, now: float) -> None:
        """Makes a group active whatever it waits for."""
        entry = self._members.entries.get(key)
        if entry is not None and entry.place not in (ACTIVE, IN_FLIGHT):
            self._make_active(entry, FORCE_ACTIVATE.label, now)

    def _drop(self, entry: QueuedGroup) -> None:
        del self._members.entries[entry.key]
        if entry.pod.uid in self._places:
            self._places.take(entry)

    # Attempts

    def activate(self, pods: Iterable[Pod], now: float) -> None:
        alone = []
        for pod in pods:
            key = self._members.key_of(pod.uid)
            if key is None:
                alone.append(pod)
            else:
                self.activate_group(key, now)
        super().activate(alone, now)

    def give_back(self, queued: QueuedPod, *, pod: Pod, attempt: FailedAttempt, now: float) -> None:
        """Returns a pod; a member whose group is in the queue already joins its group."""
        key = self._groups.key_of(pod)
        if key is None:
            super().give_back(queued, pod=pod, attempt=attempt, now=now)
            return
        if pod.uid in self._members:
            return
        queued.pod = pod
        queued.note_failure(attempt)
        is_alone = key not in self._members.entries
        self._enter_member(queued, key, now)
        entry = self._members.entries.get(key)
        if entry is not None and is_alone:
            # What failed after the decision is made good first: it keeps its place in line.
            entry.consecutive_errors = queued.consecutive_errors
            entry.expiry = self.backoff.expiry(now, entry.failures)
            if entry.backs_off(now) and entry.place is ACTIVE:
                self._move(entry, Place.ERROR_BACKOFF, SCHEDULE_ATTEMPT_FAILURE)

    def members_placed(self, entry: QueuedGroup, uids: Iterable[str]) -> None:
        """Notes that members of a group in flight have a node and do not wait any more."""
        self._members.remove_placed(entry, uids)

    def return_group(
        self, entry: QueuedGroup, how: GroupReturn, now: float, *, needs_room: bool = False
    ) -> None:
        """Returns a popped group with the members without a node; without any, it is done.

        A group that only needs room is not tried again before an event may have made room.
        """
        self.done(entry.pod.uid)
        for member in entry.late.values():
            entry.join(member)
        entry.late = {}
        if not entry.members:
            self._members.entries.pop(entry.key, None)
            return
        if self._groups.get(entry.key) is None:
            del self._members.entries[entry.key]
            self._members.set_aside(entry.key, entry.members.values())
            return
        entry.rejectors = frozenset()
        entry.was_flushed = False
        if how is not GroupReturn.LEFT_OVER:
            entry.timestamp, entry.arrival = now, next(self._arrivals)
        self._group_backoff.begin(entry, how, now)
        if needs_room:
            self._group_backoff.await_help(entry, len(self._members.entries))
        if entry.backs_off(now):
            if self._is_admitted(entry, SCHEDULE_ATTEMPT_FAILURE):
                # Not where it may be popped early: it would be tried over and over.
                self._move(entry, Place.ERROR_BACKOFF, SCHEDULE_ATTEMPT_FAILURE)
        else:
            self._make_active(entry, SCHEDULE_ATTEMPT_FAILURE, now)

    def wake(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        now: float,
        concerns: Callable[[Pod], bool] | None = None,
    ) -> None:
        if event is not ASSIGNED_POD_ADD:
            self._group_backoff.helpful += 1
        super().wake(event, old, new, now, concerns)

    def _make_active(self, queued: QueuedPod, label: str, now: float) -> None:
        if isinstance(queued, QueuedGroup) and label == BACKOFF_COMPLETE:
            waits = now - queued.timestamp < MAX_IN_UNSCHEDULABLE
            if waits and not self._group_backoff.may_be_helped(queued):
                # It would be refused again. To leave it alone costs others nothing.
                self._group_backoff.begin_again(queued, now, len(self._members.entries))
                self._places.move(queued, Place.ERROR_BACKOFF)
                return
        super()._make_active(queued, label, now)

    # What is held back

    def _is_held(self, entry: QueuedGroup) -> bool:
        """Whether the group itself is held back, so that no event for plugins can help it.

        It is in none of the places, and is checked again when the group itself changes.
        """
        return entry.place is GATED and entry.pod.uid not in self._places

    def _is_admitted(self, queued: QueuedPod, label: str) -> bool:
        if not isinstance(queued, QueuedGroup):
            return super()._is_admitted(queued, label)
        answer = self._hold_group(queued.key, queued.pod.spec.scheduler_name)
        if answer is not None:
            self._hold(queued, answer, label)
            return False
        answer = self._ask_members(queued)
        if answer is not None:
            self._gate(queued, answer, label)
            return False
        queued.gated_by, queued.refusal = "", None
        return True

    def _look_again(self, entry: QueuedGroup, member: QueuedPod, label: str, now: float) -> None:
        """Checks a group after a member came or changed: the member may hold it back or free it."""
        is_gated = entry.place is GATED
        answer = self._hold_group(entry.key, entry.pod.spec.scheduler_name)
        if answer is not None:
            if self._is_held(entry):
                entry.gated_by, entry.refusal = answer
                self._count_incoming(GATED, label, 1)
            else:
                self._hold(entry, answer, label)
            return
        answer = self._ask_members(entry) if is_gated else self._admit(member.pod, "")
        if answer is None:
            if is_gated:
                entry.gated_by, entry.refusal = "", None
                self._activate(entry, label, now)
        elif answer[0] in entry.rejectors and is_gated and not self._is_held(entry):
            # Where the group is filed follows from who holds it back.
            entry.gated_by, entry.refusal = answer
            self._count_incoming(GATED, label, 1)
        else:
            self._gate(entry, answer, label)

    def _may_help(self, entry: QueuedGroup, old: Pod, new: Pod) -> bool:
        """Whether the plugin that holds a group back says that a member's change matters."""
        asked = QueuedPod(new, entry.timestamp, entry.arrival, rejectors=entry.rejectors)
        return any(
            self._listeners.answer(asked, self._listeners.identify(event, old, new))
            is not WakeAnswer.STAY
            for event in pod_events(old, new, assigned=False)
        )

    def _ask_members(self, entry: QueuedGroup) -> tuple[str, Rejected] | None:
        for member in entry.members.values():
            answer = self._admit(member.pod, entry.gated_by)
            if answer is not None:
                return answer
        return None

    def _hold(self, entry: QueuedGroup, answer: tuple[str, Rejected], label: str) -> None:
        """Holds the group itself back."""
        if entry.pod.uid in self._places:
            self._take(entry)
        entry.place = GATED
        entry.gated_by, entry.refusal = answer
        entry.was_flushed = False
        self._count_group(entry, GATED, label)

    def _gate(self, entry: QueuedGroup, answer: tuple[str, Rejected], label: str) -> None:
        """Holds back the whole group if one member is held back."""
        entry.gated_by, entry.refusal = answer
        entry.rejectors |= {entry.gated_by}
        entry.was_flushed = False
        self._move(entry, GATED, label)
