"""An entity of the queue: a pod, or a gang of pods that are tried together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec.structs import replace as changed

from moorage.framework.status import Rejected
from moorage.objects.pod import Pod
from moorage.objects.pod_group import GroupKey, PodGroup

#: What tells entities apart: the uid of a pod, or the group of a gang.
EntityKey = str | GroupKey


#: Where an entity is. It is always in exactly one place.
Place = Literal[
    "active",
    # Rejected by a plugin, and waiting until it may be tried again.
    "backoff",
    # The same, after a failure that is no plugin's verdict.
    "error backoff",
    # Waiting for something to happen in the cluster.
    "unschedulable",
    # Held back before it may be queued.
    "gated",
    # Of a group that is not known, and kept aside until it is.
    "incomplete",
    # Popped, and being scheduled.
    "in flight",
    "nowhere",
]

BACKING_OFF: tuple[Place, ...] = ("backoff", "error backoff")
UNSCHEDULABLE_PLACES: frozenset[Place] = frozenset(("unschedulable", "gated"))

#: The queue of kube-scheduler's metrics that a place belongs to.
QUEUES: Mapping[Place, str] = {
    "active": "active",
    "backoff": "backoff",
    "error backoff": "backoff",
    "unschedulable": "unschedulable",
    "gated": "unschedulable",
}

#: A backoff expiry that is always over.
NEVER_FAILED = -1


class FailedAttempt(msgspec.Struct, frozen=True):
    """Why an attempt failed: plugins rejected the pod, or (without any) there was an error."""

    rejectors: frozenset[str] = frozenset()
    #: Plugins that wait for something else to happen first.
    pending: frozenset[str] = frozenset()
    message: str = ""
    #: How long the pod is left alone at least, because trying it is costly, in seconds.
    delay: float = 0.0
    #: What it shares with those that would have failed as well, now and whenever this one does;
    #: None if nothing is known of others.
    alike: Hashable | None = None
    #: Whether it counts as a rejection although no event of a plugin ends the wait.
    is_rejection: bool = False
    #: Whether a gang lacks nothing but room.
    needs_room: bool = False


class Entity(msgspec.Struct, eq=False, gc=False):
    """A pod in the queue or in flight; only the queue changes it. A gang is an entity, too."""

    #: The uid of the pod, or the group of the gang.
    key: EntityKey
    #: The pod. Of a gang, it is the member that ranks highest, with the priority of the group.
    pod: Pod
    #: When it entered, or returned after its last failure.
    timestamp: float
    #: Grows with every entry and return, so that equal sort keys keep their order of arrival.
    arrival: int
    place: Place = "nowhere"
    attempts: int = 0
    #: When it was first let into the active queue.
    initial_attempt: float | None = None
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    #: The whole second in which its backoff ends.
    expiry: int = NEVER_FAILED
    #: The plugins that rejected it, and those that wait for something else to happen first.
    rejectors: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    #: Why its last attempt came to nothing, as users read it.
    message: str = ""
    gated_by: str = ""
    refusal: Rejected | None = None
    #: Whether the state of its group holds it back, so that no event of a plugin can help.
    is_held: bool = False
    #: When it was last woken only because it had waited for too long.
    flushed: float = 0.0
    #: When it has waited too long, while it waits for an event.
    swept_at: float = 0.0
    #: Whether the attempt under way, or the next, is due to that alone.
    was_flushed: bool = False
    #: Whether trying it is so costly that it is tried rarely, and no plugin asked whether to.
    is_costly: bool = False
    #: What it shares with those that fail whenever it does; None if nothing is known of others.
    alike: Hashable | None = None
    #: When its attempt began, by the observer's clock.
    began: float = 0.0

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods that are tried together."""
        return (self.pod,)

    @property
    def asked(self) -> Pod:
        """The pod about which hints are asked."""
        return self.pod

    @property
    def everyone(self) -> tuple[Entity, ...]:
        """All its pods, each with the place of the whole."""
        return (self,)

    def find(self, uid: str) -> Entity:
        """Returns one of its pods, with the place of the whole."""
        return self

    @property
    def waking_plugins(self) -> frozenset[str]:
        """The plugins whose events can wake the pod."""
        return self.rejectors | self.pending if self.pending else self.rejectors

    @property
    def failures(self) -> int:
        """How many failures its backoff counts."""
        return self.consecutive_errors or self.unschedulable_count

    def backs_off(self, now: float) -> bool:
        """Whether the pod must wait: until the second of its expiry is over."""
        return self.expiry >= math.floor(now)

    def note_failure(self, attempt: FailedAttempt) -> None:
        """Notes a failed attempt."""
        self.rejectors, self.pending = attempt.rejectors, attempt.pending
        self.message = attempt.message
        self.is_costly = attempt.delay > 0
        self.alike = attempt.alike
        self.was_flushed = False
        if attempt.is_rejection or self.waking_plugins:
            self.unschedulable_count += 1
            self.consecutive_errors = 0
        else:
            self.consecutive_errors += 1

    def replace(self, pod: Pod) -> None:
        """Replaces the pod by its newer value. What it then shares with others is not known."""
        if self.alike is not None and not _is_decided_alike(self.pod, pod):
            self.alike = None
        self.pod = pod

    def start(self) -> None:
        """Begins an attempt, for which old verdicts do not count."""
        self.attempts += 1
        self.rejectors = self.pending = frozenset()


class Gang(Entity, eq=False, gc=False):
    """The pods of a group, which are tried together."""

    #: By uid.
    members: dict[str, Entity] = {}
    #: Those that came while the gang was in flight.
    late: dict[str, Entity] = {}
    #: How much had happened that might help a gang when it was refused for lack of room; None if
    #: anything may help.
    refused_at: int | None = None
    #: The first member that a plugin holds back.
    gated_pod: Pod | None = None

    @property
    def group(self) -> GroupKey:
        """The group that the members name."""
        assert isinstance(self.key, tuple)
        return self.key

    @property
    def pods(self) -> tuple[Pod, ...]:
        return tuple([each.pod for each in self.members.values()])

    @property
    def asked(self) -> Pod:
        return self.gated_pod or self.pod

    @property
    def everyone(self) -> tuple[Entity, ...]:
        everyone = (*self.members.values(), *self.late.values())
        for member in everyone:
            member.place = self.place
        return everyone

    def find(self, uid: str) -> Entity:
        member = self.members.get(uid) or self.late[uid]
        member.place = self.place
        return member

    @property
    def in_order(self) -> list[Entity]:
        """Returns the members in the order in which they are tried."""
        return sorted(self.members.values(), key=_turn)

    def join(self, member: Entity) -> None:
        """Adds a pod."""
        self.members[member.pod.uid] = member
        self.refused_at = None

    def leave(self, uid: str) -> None:
        """Removes a pod, if it is here."""
        self.members.pop(uid, None)
        self.late.pop(uid, None)

    def start(self) -> None:
        super().start()
        for member in self.members.values():
            member.start()

    def lead(self, group: PodGroup, member: Pod) -> bool:
        """Lets a member lead, with the priority of the group; returns whether that changes it."""
        priority = group.priority_beside(member)
        if priority == self.pod.priority:
            return False
        spec = changed(member.spec, priority=priority)
        self.pod = member if member.priority == priority else changed(member, spec=spec)
        return True


def _turn(member: Entity) -> tuple[int, int, float, int]:
    # Not by the property of the pod: this is called for every member, and a call takes long.
    priority = member.pod.spec.priority or 0
    return -priority, -member.attempts, member.timestamp, member.arrival


def _is_decided_alike(old: Pod, new: Pod) -> bool:
    """Whether no decision could see a change of a pod."""
    return (
        old.spec is new.spec
        and old.annotations == new.annotations
        and old.owner == new.owner
        and not new.nominated_node_name
        and not new.status.sizes
    )


# Further doublings are beyond any maximum, and floats end at 2 to the 1024.
_MOST_DOUBLINGS = 62


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubles with each failure, from `initial` to `maximum` seconds; a maximum of 0 means none."""

    initial: float = 1.0
    maximum: float = 10.0
    #: Whether a rejected pod is taken before its time when nothing else is to be done.
    pops_early: bool = True

    def seconds(self, failures: int, size: int = 1) -> float:
        """Returns how long an entity of that many pods waits after that many failures."""
        if failures == 0:
            return 0.0
        longest = self.maximum * math.sqrt(size)
        return min(self.initial * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), longest)

    def expiry(self, timestamp: float, failures: int, size: int = 1) -> int:
        """Returns the whole second in which a backoff ends that began at `timestamp`."""
        if self.maximum <= 0:
            return NEVER_FAILED
        return math.floor(timestamp + self.seconds(failures, size))
