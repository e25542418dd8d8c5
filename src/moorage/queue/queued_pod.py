"""A pod that waits to be scheduled: what the queue remembers of it, and its backoff."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from moorage.framework.status import Rejected
from moorage.objects.pod import Pod


class Place(StrEnum):
    """The place of a pod. It is always in exactly one."""

    ACTIVE = "active"
    #: Rejected by a plugin, and waiting until it may be tried again.
    BACKOFF = "backoff"
    #: The same, after a failure that is no plugin's verdict.
    ERROR_BACKOFF = "error backoff"
    #: Waiting for something to happen in the cluster.
    UNSCHEDULABLE = "unschedulable"
    #: Held back before it may be queued.
    GATED = "gated"
    #: Of a group that is not known, and kept aside until it is.
    INCOMPLETE = "incomplete"
    #: Popped, and being scheduled.
    IN_FLIGHT = "in flight"
    NOWHERE = "nowhere"

    # Places are looked up for every move of a pod, and that of an enum is many times slower.
    __hash__ = str.__hash__


#: The queue of kube-scheduler's metrics that a place belongs to.
QUEUES = {
    Place.ACTIVE: "active",
    Place.BACKOFF: "backoff",
    Place.ERROR_BACKOFF: "backoff",
    Place.UNSCHEDULABLE: "unschedulable",
    Place.GATED: "unschedulable",
}
# Looked up once, because that takes long for an enum, and every pod passes through these.
ACTIVE, IN_FLIGHT, NOWHERE = Place.ACTIVE, Place.IN_FLIGHT, Place.NOWHERE
BACKOFF, ERROR_BACKOFF = Place.BACKOFF, Place.ERROR_BACKOFF
UNSCHEDULABLE, GATED = Place.UNSCHEDULABLE, Place.GATED

BACKING_OFF = (BACKOFF, ERROR_BACKOFF)
UNSCHEDULABLE_PLACES = frozenset({UNSCHEDULABLE, GATED})

#: A backoff expiry that is always over.
NEVER_FAILED = -1


class SharedFailure(msgspec.Struct, frozen=True):
    """What pods share that all fail whenever one of them does."""

    shared: Hashable
    #: Whether pods of other templates, namespaces or labels may share it, too.
    spans_templates: bool = False


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
    alike: SharedFailure | None = None


class QueuedPod(msgspec.Struct, eq=False, gc=False):
    """A pod in the queue or in flight; only the queue changes it."""

    pod: Pod
    #: When it entered, or returned after its last failure.
    timestamp: float
    #: Grows with every entry and return, so that equal sort keys keep their order of arrival.
    arrival: int
    place: Place = Place.NOWHERE
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
    #: When it was last woken only because it had waited for too long.
    flushed: float = 0.0
    #: When it has waited too long, while it waits for an event.
    swept_at: float = 0.0
    #: Whether the attempt under way, or the next, is due to that alone.
    was_flushed: bool = False
    #: Whether trying it is so costly that it is tried rarely, and no plugin asked whether to.
    is_costly: bool = False
    #: What it shares with those that fail whenever it does; None if nothing is known of others.
    alike: SharedFailure | None = None
    #: When its attempt began, by the observer's clock.
    began: float = 0.0

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
        if self.waking_plugins:
            self.unschedulable_count += 1
            self.consecutive_errors = 0
        else:
            self.consecutive_errors += 1

    def replace(self, pod: Pod) -> None:
        """Replaces the pod by its newer value. What it then shares with others is not known."""
        alike = self.alike
        if alike is not None and not (
            _is_decided_alike(self.pod, pod)
            and not (alike.spans_templates and self.pod.labels != pod.labels)
        ):
            self.alike = None
        self.pod = pod

    def start(self) -> None:
        """Begins an attempt, for which old verdicts do not count."""
        self.attempts += 1
        self.rejectors = self.pending = frozenset()


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

    def seconds(self, failures: int) -> float:
        """Returns how long a pod waits after that many failures."""
        if failures == 0:
            return 0.0
        return min(self.initial * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), self.maximum)

    def expiry(self, timestamp: float, failures: int) -> int:
        """Returns the whole second in which a backoff ends that began at `timestamp`."""
        if self.maximum <= 0:
            return NEVER_FAILED
        return math.floor(timestamp + self.seconds(failures))
