"""The scheduling queue: which entity is tried next, and when failed ones are tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from math import floor, inf
from typing import Any

from moorage.cluster.pod_groups import KnownGroups
from moorage.framework.observe import Observer
from moorage.framework.status import Rejected
from moorage.framework.wakeups import ClusterEvent
from moorage.objects.pod import Pod
from moorage.objects.pod_group import GroupKey, PodGroup

from . import object_events
from .entity import (
    BACKING_OFF,
    NEVER_FAILED,
    QUEUES,
    UNSCHEDULABLE_PLACES,
    Backoff,
    Entity,
    EntityKey,
    FailedAttempt,
    Gang,
    Place,
)
from .places import Places, SortKey
from .queue_events import InFlight, Listeners, WakeAnswer, Wakeups
from .waker import Concerns, Waker

#: The plugin that holds something back, and why; None if nothing does.
Held = tuple[str, Rejected] | None
#: Asks whether a pod may be queued, first of all the plugin that held it back last ("" if none).
Admit = Callable[[Pod, str], Held]
#: Asks what holds a group of a scheduler back, apart from its members.
AdmitGroup = Callable[[GroupKey, str], Held]

#: How long a pod waits for an event before it is tried again without one, in seconds.
MAX_IN_UNSCHEDULABLE = 300.0

# Longer than any clock runs, and a number that can be rounded.
_FOR_EVER = 1e15

# Of many gangs that wait for room, so many come back in the same second.
_GANGS_PER_SECOND = 64


class Queue:
    """Entities that wait, entities in flight, and the rules by which they move.

    An entity is a pod, or a gang: the pods of a group, which are tried together. Pods whose group
    is not known wait as a gang that is incomplete. A pod that comes while its gang is in flight
    waits until the gang returns.
    """

    def __init__(  # noqa: PLR0913 - each is a rule of its own, given by name
        self,
        *,
        sort_key: SortKey,
        admit: Admit,
        wakeups: Wakeups,
        backoff: Backoff,
        groups: KnownGroups,
        admit_group: AdmitGroup,
        observer: Observer,
        on_broken_order: Callable[[BaseException], None],
        can_be_held_back: Callable[[Pod], bool] | None,
    ) -> None:
        """Makes an empty queue.

        `on_broken_order` is called if the sort key is given up for priority and age.
        `can_be_held_back` returns whether `hold_back` concerns a pod.
        """
        self.backoff = backoff
        #: How many entities came into each queue of kube-scheduler's metrics, by event label and
        #: type.
        self.incoming_entities: Counter[tuple[str, str, str]] = Counter()
        #: How many pods came with gangs.
        self._incoming_members: Counter[tuple[str, str]] = Counter()
        self._admit = admit
        self._admit_group = admit_group
        self._groups = groups
        self._listeners = Listeners(wakeups, observer)
        self._places = Places(
            sort_key, MAX_IN_UNSCHEDULABLE, self._listeners, on_broken_order, can_be_held_back
        )
        self._in_flight = InFlight()
        #: The gangs that wait or are in flight, and the group of each of their pods, by uid.
        self._gangs: dict[GroupKey, Gang] = {}
        self._group_of: dict[EntityKey, GroupKey] = {}
        self._waker = Waker(self._places.unschedulable, self._listeners, self._move_by)
        #: Counts what happened that might help a refused gang: all but that a pod got a node.
        self._helpful = 0
        self._arrivals = count()
        self._flushed: float | None = None

    # What waits

    def __len__(self) -> int:
        return sum(1 for _ in self) if self._gangs else len(self._places)

    def __contains__(self, uid: str) -> bool:
        return uid in self._group_of or uid in self._places

    def __iter__(self) -> Iterator[Entity]:
        """Yields the waiting pods, with their place and the plugins that rejected them."""
        return (pod for entity in self._places for pod in entity.everyone)

    def get(self, uid: str) -> Entity | None:
        """Returns the waiting pod of this uid."""
        entity = self._find(uid)
        if entity is None or entity.place == "in flight":
            return None
        return entity.find(uid)

    @property
    def in_flight(self) -> tuple[Entity, ...]:
        """Returns the popped pods that are not done, in the order of their pop."""
        return tuple(pod for entity in self._in_flight for pod in entity.everyone)

    def sizes(self) -> dict[str, int]:
        """Counts waiting pods by the queues of kube-scheduler's metrics."""
        sizes = self._places.sizes()
        if self._groups.are_used:
            sizes["incomplete"] = sizes["pending"] = 0
            for gang in self._gangs.values():
                sizes["pending"] += len(gang.late)
                if gang.place == "incomplete":
                    sizes["incomplete"] += len(gang.members)
                elif gang.place != "in flight":
                    # As an entity it is counted once.
                    sizes[_QUEUES[gang.place]] += len(gang.members) - 1
        return sizes

    def entities(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Counts waiting entities by queue and type."""
        gangs = Counter(_QUEUES.get(gang.place, "") for gang in self._gangs.values())
        for queue, number in self._places.sizes().items():
            yield (queue, "pod"), number - gangs[queue]
            if self._groups.are_used:
                yield (queue, "podgroup"), gangs[queue]

    @property
    def incoming(self) -> Counter[tuple[str, str]]:
        """Counts the pods that came into each queue, by event label."""
        counts = Counter(self._incoming_members)
        for (queue, label, kind), number in self.incoming_entities.items():
            if kind == "pod":
                counts[queue, label] += number
        return counts

    def rejections(self) -> Counter[tuple[str, str]]:
        """Counts waiting pods by the plugin and profile that rejected them."""
        return Counter(
            (plugin, queued.pod.spec.scheduler_name)
            for queued in self
            for plugin in queued.waking_plugins
        )

    def count_remembered(self) -> Counter[str]:
        """Counts events that are kept for entities in flight, by event, and these entities."""
        counts = Counter(each.event.label for each in self._in_flight.remembered)
        counts[object_events.POD_POPPED] = len(self._in_flight)
        return counts

    # Pods come, change and go

    def add(self, pod: Pod, now: float) -> None:
        """Adds a new pod; it replaces an older pod of the same name."""
        known = self._find(pod.uid)
        if known is None:
            self._enter(pod, object_events.UNSCHEDULED_POD_ADD.label, now)
        else:
            self.update(known.find(pod.uid).pod, pod, now)

    def update(self, old: Pod, new: Pod, now: float) -> None:
        """Takes in a change of a pod without a node; an unknown pod is added."""
        entity = self._find(new.uid)
        if entity is None:
            self._enter(new, object_events.UNSCHEDULED_POD_UPDATE.label, now)
        elif self._groups.key_of(new) != self._group_of.get(new.uid):
            # It names another group than before.
            self.delete(old)
            self.done(old.uid)
            self.add(new, now)
        elif isinstance(entity, Gang):
            self._update_member(entity, old, new, now)
        elif entity.place == "in flight":
            for event in object_events.pod_events(old, new, assigned=False):
                self._in_flight.record(self._listeners.identify(event, old, new))
        else:
            before = self._places.unschedulable.companions(new.uid)
            entity.replace(new)
            if not self._reconsider(entity, old, now):
                self._places.refresh(entity)
            if before is not None:
                self._waker.make_up_for(entity, before, now)

    def delete(self, pod: Pod) -> None:
        """Removes a waiting pod; a pod in flight leaves with `done`."""
        entity = self._find(pod.uid)
        if isinstance(entity, Gang):
            del self._group_of[pod.uid]
            entity.leave(pod.uid)
            if not entity.members and entity.place != "in flight":
                self._drop(entity)
        elif entity is not None and entity.place != "in flight":
            self._take(entity)

    def _find(self, key: EntityKey) -> Entity | None:
        """Returns the entity of a pod, by its uid, or of a group."""
        key = self._group_of.get(key, key)
        return self._places.get(key) or self._in_flight.get(key)

    def _enter(self, pod: Pod, label: str, now: float) -> None:
        """Puts a pod into the active queue, or with its group."""
        queued = Entity(pod.uid, pod, now, next(self._arrivals))
        key = self._groups.key_of(pod)
        if key is not None:
            self._join(queued, key, label, now)
            return
        older = self._places.find_by_name(pod.key)
        if older is not None:
            self._take(older)
        self._make_active(queued, label, now)

    def _reconsider(self, queued: Entity, old: Pod, now: float) -> bool:
        """Wakes an unschedulable pod if a change of the pod itself may help it."""
        if queued.place not in UNSCHEDULABLE_PLACES:
            return False
        for event in object_events.pod_events(old, queued.pod, assigned=False):
            queue_event = self._listeners.identify(event, old, queued.pod)
            answer = self._listeners.answer(queued, queue_event)
            if answer != "stay":
                self._move_by(queued, answer, event.label, now)
            if queued.place not in UNSCHEDULABLE_PLACES:
                return True
        return False

    # Gangs

    def _join(self, member: Entity, key: GroupKey, label: str, now: float) -> None:
        """Puts a pod with its group."""
        pod = member.pod
        self._group_of[pod.uid] = key
        gang, group = self._gangs.get(key), self._groups.get(key)
        if gang is None:
            self._begin_gang(key, (member,), label, now)
        elif gang.place == "in flight":
            gang.late[pod.uid] = member
        else:
            gang.join(member)
            if group is None:
                return
            if group.priority_beside(pod) > gang.pod.priority and gang.lead(group, pod):
                self._places.refresh(gang)
            if gang.place == "gated":
                self._make_active(gang, label, now)
            else:
                self._is_admitted(gang, label, (pod,))

    def _begin_gang(self, key: GroupKey, members: Iterable[Entity], label: str, now: float) -> None:
        """Queues pods as a gang; while their group is not known, the gang is incomplete."""
        by_uid = {each.pod.uid: each for each in members}
        first = next(iter(by_uid.values()))
        gang = Gang(key, first.pod, first.timestamp, next(self._arrivals), members=by_uid)
        self._gangs[key] = gang
        group = self._groups.get(key)
        if group is None:
            self._places.move(gang, "incomplete")
        else:
            self._choose_lead(gang, group)
            self._make_active(gang, label, now)

    def _begin_again(self, gang: Gang, label: str, now: float) -> None:
        """Queues the pods of a gang as if they came now, because its group came or is gone."""
        self._drop(gang)
        members = (*gang.members.values(), *gang.late.values())
        self._begin_gang(gang.group, members, label, now)

    def _drop(self, gang: Gang) -> None:
        del self._gangs[gang.group]
        if gang.key in self._places:
            self._places.take(gang)

    def _choose_lead(self, gang: Gang, group: PodGroup) -> bool:
        return gang.lead(group, max(gang.pods, key=group.priority_beside))

    def _update_member(self, gang: Gang, old: Pod, new: Pod, now: float) -> None:
        member = gang.find(new.uid)
        member.pod = new
        if gang.place in ("in flight", "incomplete"):
            return
        events = object_events.pod_events(old, new, assigned=False)
        if object_events.UNSCHEDULED_POD_UPDATE not in events:
            # It asks for something else now.
            gang.refused_at = None
        if gang.place != "gated":
            self._is_admitted(gang, object_events.UNSCHEDULED_POD_UPDATE.label, (new,))
        elif gang.gated_pod is not None and gang.gated_pod.uid == new.uid:
            gang.gated_pod = new
            heard = (self._listeners.identify(event, old, new) for event in events)
            if any(self._listeners.answer(gang, each) != "stay" for each in heard):
                self._make_active(gang, object_events.UNSCHEDULED_POD_UPDATE.label, now)
            if gang.place == "gated":
                self._places.refresh(gang)

    def put_group(self, before: PodGroup | None, group: PodGroup, now: float) -> None:
        """Takes in a new or changed group."""
        gang = self._gangs.get(group.group_key)
        if gang is None or gang.place == "in flight":
            return
        if gang.place == "incomplete":
            self._begin_again(gang, object_events.UNSCHEDULED_POD_ADD.label, now)
            return
        if before is None or not group.asks_as(before):
            gang.refused_at = None
        if self._choose_lead(gang, group):
            self._places.refresh(gang)
        self.look_again(group.group_key, object_events.GROUP_CHANGE, now)

    def remove_group(self, key: GroupKey, now: float) -> None:
        """Removes a group: its pods wait until it exists again."""
        gang = self._gangs.get(key)
        if gang is not None and gang.place != "in flight":
            self._begin_again(gang, "", now)

    # Attempts

    def pop(self, now: float) -> Entity | None:
        """Returns what to try next. It is in flight until `done`, `give_back` or `put_back`."""
        if now >= self._places.due:
            self.flush(now)
        if self._waker.followed:
            self._waker.send_followers(now)
        queued = self._places.pop("active")
        if queued is None and self.backoff.pops_early:
            queued = self._places.pop("backoff")
            if queued is not None:
                self._count(queued, "active", object_events.POP_FROM_BACKOFF)
        if queued is None:
            return None
        queued.start()
        queued.place = "in flight"
        self._in_flight.start(queued)
        self._waker.end(queued)
        return queued

    def done(self, key: EntityKey) -> None:
        """Ends the attempt: later events do not concern the entity."""
        self._in_flight.end(key)

    def members_placed(self, gang: Gang, uids: Iterable[str]) -> None:
        """Notes that members of a gang in flight have a node and do not wait any more."""
        for uid in uids:
            self._group_of.pop(uid, None)
            gang.leave(uid)

    def give_back(
        self, queued: Entity, *, attempt: FailedAttempt, now: float, pod: Pod | None = None
    ) -> None:
        """Returns what was popped after a failed attempt; a pod in its present form.

        A pod of a group, which failed after its gang was decided, joins its gang. A gang returns
        with the members without a node; without any, it is gone.
        """
        missed = self._in_flight.end(queued.key)
        if pod is not None and (key := self._groups.key_of(pod)) is not None:
            queued.pod = pod
            self._return_member(queued, key, attempt, now)
            return
        if not self._is_here_to_stay(queued, pod, now):
            return
        queued.timestamp, queued.arrival = now, next(self._arrivals)
        queued.note_failure(attempt)
        queued.expiry = self.backoff.expiry(now, queued.failures, len(queued.pods))
        if queued.is_costly:
            queued.expiry = max(queued.expiry, floor(now + attempt.delay))
        if isinstance(queued, Gang):
            queued.refused_at = None
            if attempt.needs_room:
                queued.refused_at = self._helpful
                queued.expiry += self._spread(queued)
        self._move_by(
            queued,
            self._listeners.answer_missed(queued, missed),
            object_events.SCHEDULE_ATTEMPT_FAILURE,
            now,
        )
        if queued.alike is not None:
            self._waker.note_failed(queued)

    def put_back(self, queued: Entity, *, now: float, pod: Pod | None = None) -> None:
        """Returns what was popped and keeps its turn: a pod whose attempt was not finished.

        Or a gang of which enough members were placed: the others are tried at once.
        """
        self._in_flight.end(queued.key)
        if self._is_here_to_stay(queued, pod, now):
            if isinstance(queued, Gang):
                queued.unschedulable_count = queued.consecutive_errors = 0
                queued.expiry, queued.refused_at = NEVER_FAILED, None
            self._make_active(queued, object_events.SCHEDULE_ATTEMPT_FAILURE, now)

    def _is_here_to_stay(self, queued: Entity, pod: Pod | None, now: float) -> bool:
        """Brings what was in flight up to date; returns whether it goes on waiting."""
        if not isinstance(queued, Gang):
            queued.pod = queued.pod if pod is None else pod
            return self._places.find_by_name(queued.pod.key) is None
        group = self._groups.get(queued.group)
        late, queued.late = queued.late, {}
        for member in late.values():
            queued.join(member)
        if not queued.members:
            self._gangs.pop(queued.group, None)
        elif group is None:
            self._begin_again(queued, "", now)
        elif late:
            self._choose_lead(queued, group)
        return bool(queued.members) and group is not None

    def _return_member(
        self, member: Entity, key: GroupKey, attempt: FailedAttempt, now: float
    ) -> None:
        """Puts a pod that failed after the decision with its gang, if it is not there already."""
        if member.pod.uid in self._group_of:
            return
        member.note_failure(attempt)
        is_alone = key not in self._gangs
        self._join(member, key, object_events.UNSCHEDULED_POD_ADD.label, now)
        gang = self._gangs[key]
        if is_alone and gang.place != "incomplete":
            # What failed after the decision is made good first: it keeps its place in line.
            gang.consecutive_errors = member.consecutive_errors
            gang.expiry = self.backoff.expiry(now, gang.failures)
            if gang.backs_off(now) and gang.place == "active":
                self._move(gang, "error backoff", object_events.SCHEDULE_ATTEMPT_FAILURE)

    def _spread(self, gang: Gang) -> int:
        """Returns by how many seconds a gang comes back later, so that not all come at once."""
        return gang.arrival % (1 + len(self._gangs) // _GANGS_PER_SECOND)

    def hold_back(self, yes: bool) -> None:
        """Stops popping the pods that can be held back, or pops them again."""
        self._places.holds_back = yes

    # What ends a wait

    def wake(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        now: float,
        concerns: Concerns | None = None,
    ) -> None:
        """Wakes pods that the event may help, as the plugins that rejected them judge it."""
        if event is not object_events.ASSIGNED_POD_ADD:
            self._helpful += 1
        if not self._in_flight and not self._places.unschedulable.filed:
            # Most of what happens is that a pod is placed while nothing waits.
            return
        queue_event = self._listeners.identify(event, old, new)
        self._waker.wake(queue_event, now, concerns)
        self._in_flight.record(queue_event)

    def activate(self, key: EntityKey, now: float) -> None:
        """Makes the entity of a pod or a group active whatever it waits for.

        One in flight is tried again on return.
        """
        queued = self._find(key)
        if queued is None or queued.place == "active":
            return
        if queued.place == "in flight":
            self._in_flight.record(
                self._listeners.identify(object_events.FORCE_ACTIVATE, None, queued.pod)
            )
        else:
            self._make_active(queued, object_events.FORCE_ACTIVATE.label, now)

    def look_again(self, key: EntityKey, label: str, now: float) -> None:
        """Checks whether what is gated may be tried, because what held it back may be over."""
        queued = self._find(key)
        if queued is not None and queued.place == "gated":
            self._make_active(queued, label, now)

    def retry(self, uid: str, now: float) -> None:
        """Tries a pod again after a backoff, because an action to help it has failed."""
        queued = self._places.get(uid)
        if queued is None or queued.place != "unschedulable":
            return
        if self._is_admitted(queued, object_events.SCHEDULE_ATTEMPT_FAILURE):
            queued.consecutive_errors += 1
            queued.expiry = self.backoff.expiry(now, queued.failures)
            self._move(queued, "error backoff", object_events.SCHEDULE_ATTEMPT_FAILURE)

    def flush(self, now: float) -> None:
        """Makes active what has ended its backoff, and wakes what has waited too long."""
        places = self._places
        if now < places.due or now == self._flushed:
            # Whatever came since is to wait for longer than this moment.
            return
        self._flushed = now
        while queued := places.next_backed_off(now):
            if isinstance(queued, Gang) and self._is_hopeless(queued, now):
                # It would be refused again. To leave it alone costs others nothing.
                seconds = self.backoff.seconds(queued.failures, len(queued.members))
                queued.expiry = floor(now + seconds) + self._spread(queued)
                places.move(queued, "error backoff")
            else:
                self._make_active(queued, object_events.BACKOFF_COMPLETE, now)
        has_overdue = False
        while queued := places.unschedulable.next_overdue(now):
            has_overdue = True
            queued.flushed, queued.was_flushed = now, True
            self._move_by(queued, "after backoff", object_events.UNSCHEDULABLE_TIMEOUT.label, now)
        if has_overdue:
            self._in_flight.record(
                self._listeners.identify(object_events.UNSCHEDULABLE_TIMEOUT, None, None)
            )
        places.due = places.find_due()

    def _is_hopeless(self, gang: Gang, now: float) -> bool:
        """Whether nothing has happened that may help a gang since it was refused."""
        waited = now - gang.timestamp
        return gang.refused_at == self._helpful and waited < MAX_IN_UNSCHEDULABLE

    def wait_for_events(self) -> None:
        """Lets failed pods wait for an event from now on, however long that takes."""
        self._places.unschedulable.patience = _FOR_EVER

    def next_flush(self, now: float) -> float | None:
        """Returns the earliest time at which `flush` or `pop` has work to do; None if never."""
        is_ready = self._places.is_ready
        if (
            is_ready("active")
            or (self.backoff.pops_early and is_ready("backoff"))
            or self._waker.followed
        ):
            return now
        due = self._places.find_due()
        return None if due == inf else max(now, due)

    # Moves

    def _move_by(self, queued: Entity, answer: WakeAnswer, label: str, now: float) -> None:
        if answer == "stay":
            self._move(queued, "unschedulable", label)
        elif answer == "after backoff" and queued.backs_off(now):
            if not self.backoff.pops_early or self._is_admitted(queued, label):
                early = queued.waking_plugins and not queued.is_costly
                self._move(queued, "backoff" if early else "error backoff", label)
        else:
            self._make_active(queued, label, now)

    def _make_active(self, queued: Entity, label: str, now: float) -> None:
        # What may be popped out of its backoff was asked when it went there.
        asked = self.backoff.pops_early and queued.place in BACKING_OFF
        if asked or self._is_admitted(queued, label):
            if queued.initial_attempt is None:
                queued.initial_attempt = now
            self._move(queued, "active", label)

    def _is_admitted(self, queued: Entity, label: str, pods: Iterable[Pod] | None = None) -> bool:
        """Whether the entity may be queued; one that may not is gated.

        Only some `pods` are asked about if the others have been admitted before.
        """
        pod: Pod | None = queued.pod
        if isinstance(queued, Gang):
            answer, pod = self._ask_about_gang(queued, queued.pods if pods is None else pods)
        else:
            answer = self._admit(queued.pod, queued.gated_by)
        if answer is None:
            queued.gated_by, queued.refusal, queued.is_held = "", None, False
            return True
        gated_by, queued.refusal = answer
        is_held = pod is None
        stays = (
            queued.place == "gated"
            and not queued.was_flushed
            and (queued.gated_by, queued.is_held) == (gated_by, is_held)
            and (is_held or pod is queued.asked)
        )
        queued.gated_by, queued.is_held = gated_by, is_held
        if stays:
            # A pod with several victims hears of each: it stays where it is.
            if isinstance(queued, Gang):
                self._incoming_members[QUEUES["gated"], label] += 1
            else:
                self._count(queued, "gated", label)
            return False
        if isinstance(queued, Gang):
            queued.gated_pod = pod
        if not is_held:
            queued.rejectors |= {gated_by}
        queued.was_flushed = False
        self._move(queued, "gated", label)
        return False

    def _ask_about_gang(self, gang: Gang, pods: Iterable[Pod]) -> tuple[Held, Pod | None]:
        """Returns what holds a gang back, and the pod that it does; none if it is the group."""
        answer = self._admit_group(gang.group, gang.pod.spec.scheduler_name)
        if answer is not None:
            return answer, None
        for pod in pods:
            answer = self._admit(pod, gang.gated_by)
            if answer is not None:
                return answer, pod
        return None, None

    def _move(self, queued: Entity, place: Place, label: str) -> None:
        self._places.move(queued, place)
        if place in UNSCHEDULABLE_PLACES:
            self._waker.end(queued)
        self._count(queued, place, label)

    def _count(self, queued: Entity, place: Place, label: str) -> None:
        if isinstance(queued, Gang):
            self._incoming_members[QUEUES[place], label] += len(queued.members)
            self.incoming_entities[QUEUES[place], label, "podgroup"] += 1
        else:
            self.incoming_entities[QUEUES[place], label, "pod"] += 1

    def _take(self, queued: Entity) -> None:
        self._places.take(queued)
        self._waker.end(queued)

    def check(self) -> None:
        """Raises AssertionError unless each pod is in exactly one place."""
        self._places.check()
        for queued in self._in_flight:
            assert queued.place == "in flight", f"{queued.key} is in flight, not {queued.place}"
            assert queued.key not in self._places, f"{queued.key} is in flight and waits"
        for key in self._waker.check():
            sent = self._places.get(key)
            assert sent is not None, f"{key} is to be tried for others, but does not wait"
            assert sent.place not in UNSCHEDULABLE_PLACES, f"{key} is not tried for others"
        for group, gang in self._gangs.items():
            assert self._places.get(group) or self._in_flight.get(group), f"{group} is nowhere"
            assert gang.members or gang.place == "in flight", f"{group} waits without members"
        found = {uid: key for key, gang in self._gangs.items() for uid in gang.members | gang.late}
        assert found == self._group_of, "a pod is not where its group is"


# What the gauges of metrics call the places of gangs.
_QUEUES = {**QUEUES, "gated": "gated"}
