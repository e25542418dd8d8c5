"""The scheduling queue: which pod is tried next, and when failed pods are tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from math import floor, inf
from typing import Any

from moorage.framework.observe import UNOBSERVED, Observer
from moorage.framework.status import Rejected
from moorage.framework.wakeups import ClusterEvent
from moorage.objects.pod import Pod

from .companions import Companions, LikePods
from .object_events import (
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    POD_POPPED,
    POP_FROM_BACKOFF,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_UPDATE,
    pod_events,
)
from .places import Places, SortKey
from .queue_events import (
    AFTER_BACKOFF,
    STAY,
    InFlight,
    Listeners,
    QueueEvent,
    WakeAnswer,
    Wakeups,
)
from .queued_pod import (
    ACTIVE,
    BACKING_OFF,
    BACKOFF,
    ERROR_BACKOFF,
    GATED,
    IN_FLIGHT,
    NOWHERE,
    QUEUES,
    UNSCHEDULABLE,
    UNSCHEDULABLE_PLACES,
    Backoff,
    FailedAttempt,
    Place,
    QueuedPod,
)
from .representatives import Representatives

#: Asks whether a pod may be queued, first of all the plugin that held it back last ("" if none):
#: None, or the plugin that says no and why.
Admit = Callable[[Pod, str], tuple[str, Rejected] | None]

#: How long a pod waits for an event before it is tried again without one, in seconds.
MAX_IN_UNSCHEDULABLE = 300.0

# Longer than any clock runs, and a number that can be rounded.
_FOR_EVER = 1e15


class Queue:
    """Pods that wait, pods in flight, and the rules by which they move."""

    __slots__ = (
        "_admit",
        "_arrivals",
        "_flushed",
        "_in_flight",
        "_latest",
        "_listeners",
        "_places",
        "_representatives",
        "backoff",
        "incoming",
    )

    def __init__(
        self,
        *,
        sort_key: SortKey,
        admit: Admit,
        wakeups: Wakeups,
        backoff: Backoff,
        observer: Observer = UNOBSERVED,
        tell_of_order: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        """`tell_of_order` is called if the sort key is given up for priority and age."""
        self.backoff = backoff
        #: How many pods came into each queue of kube-scheduler's metrics, by event label.
        self.incoming: Counter[tuple[str, str]] = Counter()
        self._admit = admit
        self._listeners = Listeners(wakeups, observer)
        self._places = Places(sort_key, MAX_IN_UNSCHEDULABLE, self._listeners, tell_of_order)
        self._in_flight = InFlight()
        self._representatives = Representatives()
        self._arrivals = count()
        self._flushed: float | None = None
        #: The time of the last pop or wake-up.
        self._latest = 0.0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, uid: str) -> bool:
        return uid in self._places

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yields the waiting pods, with their place and the plugins that rejected them."""
        return iter(self._places)

    def get(self, uid: str) -> QueuedPod | None:
        """Returns the waiting pod of this uid."""
        return self._places.get(uid)

    @property
    def in_flight(self) -> tuple[QueuedPod, ...]:
        """Returns the popped pods that are not done, in the order of their pop."""
        return tuple(self._in_flight)

    def sizes(self) -> dict[str, int]:
        """Counts waiting pods by the queues of kube-scheduler's metrics."""
        size = self._places.size
        return {
            "active": size(ACTIVE),
            "backoff": size(BACKOFF) + size(ERROR_BACKOFF),
            "unschedulable": size(UNSCHEDULABLE),
            "gated": size(GATED),
        }

    def entities(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Counts waiting entries by queue and type."""
        return (((queue, "pod"), count) for queue, count in Queue.sizes(self).items())

    def incoming_entities(self) -> Iterator[tuple[tuple[str, str, str], int]]:
        """Counts entries that came into each queue, by event and by type."""
        return (((*key, "pod"), count) for key, count in self.incoming.items())

    def rejections(self) -> Counter[tuple[str, str]]:
        """Counts waiting pods by the plugin and profile that rejected them."""
        return Counter(
            (plugin, queued.pod.spec.scheduler_name)
            for queued in self
            for plugin in queued.waking_plugins
        )

    def count_remembered(self) -> Counter[str]:
        """Counts events that are kept for pods in flight, by event, and these pods."""
        counts = Counter(each.event.label for each in self._in_flight.remembered)
        counts[POD_POPPED] = len(self._in_flight)
        return counts

    def add(self, pod: Pod, now: float) -> None:
        """Adds a new pod; it replaces an older pod of the same name."""
        known = self._places.get(pod.uid) or self._in_flight.get(pod.uid)
        if known is None:
            self._enter(pod, UNSCHEDULED_POD_ADD.label, now)
        else:
            self.update(known.pod, pod, now)

    def update(self, old: Pod, new: Pod, now: float) -> None:
        """Takes in a change of a pod without a node; an unknown pod is added."""
        if new.uid in self._in_flight:
            for event in pod_events(old, new, assigned=False):
                self._record(self._listeners.identify(event, old, new))
        elif (queued := self._places.get(new.uid)) is None:
            self._enter(new, UNSCHEDULED_POD_UPDATE.label, now)
        else:
            before = self._places.unschedulable.companions(new.uid)
            queued.replace(new)
            if not self._reconsider(queued, old, now):
                self._places.refresh(queued)
            if before is not None:
                self._make_up_for(queued, before, now)

    def part(self, uid: str, now: float) -> None:
        """Separates a pod from its companions: their failures do not stand for it any more."""
        queued = self._places.get(uid)
        before = self._places.unschedulable.companions(uid)
        if queued is not None and before is not None:
            queued.alike = None
            self._places.move(queued, queued.place)
            self._make_up_for(queued, before, now)

    def _make_up_for(self, queued: QueuedPod, before: Companions, now: float) -> None:
        """Wakes a pod that left its companions while one of them is tried for all."""
        if queued.place is not UNSCHEDULABLE:
            return
        label = self._representatives.find_label(before)
        if (
            label is not None
            and self._places.unschedulable.companions(queued.pod.uid) is not before
        ):
            self._move_by(queued, AFTER_BACKOFF, label, now)

    def delete(self, pod: Pod) -> None:
        """Removes a waiting pod; a pod in flight leaves with `done`."""
        queued = self._places.get(pod.uid)
        if queued is not None:
            self._take(queued)

    def pop(self, now: float) -> QueuedPod | None:
        """Returns the pod to try next, which is in flight until `done` or `give_back`."""
        self._latest = now
        if now >= self._places.due:
            self.flush(now)
        if self._representatives.followed:
            self._send_next(now)
        queued = self._places.pop(ACTIVE)
        if queued is None and self.backoff.pops_early:
            queued = self._places.pop(BACKOFF)
            if queued is not None:
                self.incoming[QUEUES[ACTIVE], POP_FROM_BACKOFF] += 1
        if queued is None:
            return None
        queued.start()
        queued.place = IN_FLIGHT
        self._in_flight.start(queued)
        self._representatives.end(queued.pod.uid)
        return queued

    def done(self, uid: str) -> None:
        """Ends the attempt: later events do not concern the pod."""
        queued = self._in_flight.end(uid)
        if queued is not None:
            queued.place = NOWHERE

    def give_back(self, queued: QueuedPod, *, pod: Pod, attempt: FailedAttempt, now: float) -> None:
        """Returns a popped pod, in its present form, after a failed attempt."""
        missed = self._in_flight.events_missed_by(pod.uid)
        self.done(pod.uid)
        if self._places.find_by_key(pod.key) is not None:
            return
        queued.pod = pod
        queued.timestamp, queued.arrival = now, next(self._arrivals)
        queued.note_failure(attempt)
        queued.expiry = self.backoff.expiry(now, queued.failures)
        if queued.is_costly:
            queued.expiry = max(queued.expiry, floor(now + attempt.delay))
        self._move_by(
            queued, self._listeners.answer_missed(queued, missed), SCHEDULE_ATTEMPT_FAILURE, now
        )
        if queued.alike is not None:
            companions = self._places.unschedulable.companions(pod.uid)
            self._representatives.note_failed(pod.uid, companions)

    def divide(self, divides: Callable[[Pod], bool]) -> None:
        """Sets which pods can be held back. Call it before there are any."""
        self._places.divide(divides)

    def hold_back(self, yes: bool) -> None:
        """Stops popping the pods that can be held back, or pops them again."""
        self._places.hold_back(yes)

    def put_back(self, queued: QueuedPod, *, pod: Pod, now: float) -> None:
        """Returns a popped pod whose attempt was not finished: it keeps its turn."""
        self.done(pod.uid)
        if self._places.find_by_key(pod.key) is None:
            queued.pod = pod
            self._make_active(queued, SCHEDULE_ATTEMPT_FAILURE, now)

    def wake(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        now: float,
        concerns: Callable[[Pod], bool] | None = None,
    ) -> None:
        """Wakes pods that the event may help, as the plugins that rejected them judge it."""
        if not self._in_flight.pods and not self._places.unschedulable.filed:
            # Most of what happens is that a pod is placed while nobody waits.
            return
        self._latest = now
        queue_event = self._listeners.identify(event, old, new)
        for found in self._find_waiting(queue_event):
            if isinstance(found, Companions):
                self._wake_together(found, queue_event, concerns)
            else:
                self._wake(found, queue_event, concerns)
        self._record(queue_event)

    def activate(self, pods: Iterable[Pod], now: float) -> None:
        """Makes pods active whatever they wait for; pods in flight are tried again on return."""
        for pod in pods:
            queued = self._places.get(pod.uid)
            if queued is None:
                if pod.uid in self._in_flight:
                    self._record(self._listeners.identify(FORCE_ACTIVATE, None, pod))
            elif queued.place is not ACTIVE:
                self._make_active(queued, FORCE_ACTIVATE.label, now)

    def retry(self, uid: str, now: float) -> None:
        """Tries a pod again after a backoff, because an action to help it has failed."""
        queued = self._places.get(uid)
        if queued is None or queued.place is not UNSCHEDULABLE:
            return
        if self._is_admitted(queued, SCHEDULE_ATTEMPT_FAILURE):
            queued.consecutive_errors += 1
            queued.expiry = self.backoff.expiry(now, queued.failures)
            self._move(queued, ERROR_BACKOFF, SCHEDULE_ATTEMPT_FAILURE)

    def flush(self, now: float) -> None:
        """Makes pods active whose backoff is over, and wakes those that have waited too long."""
        places = self._places
        if now < places.due or now == self._flushed:
            # Whatever came since is to wait for longer than this moment.
            return
        self._flushed = now
        for place in BACKING_OFF:
            while queued := places.next_backed_off(place, now):
                self._make_active(queued, BACKOFF_COMPLETE, now)
        overdue = places.unschedulable.overdue(now)
        for queued in overdue:
            queued.flushed, queued.was_flushed = now, True
            self._move_by(queued, AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT.label, now)
        if overdue:
            self._record(self._listeners.identify(UNSCHEDULABLE_TIMEOUT, None, None))
        places.due = places.find_due()

    def wait_for_events(self) -> None:
        """Lets failed pods wait for an event from now on, however long that takes."""
        self._places.unschedulable.patience = _FOR_EVER

    def next_flush(self, now: float) -> float | None:
        """Returns the earliest time at which `flush` or `pop` has work to do; None if never."""
        is_ready = self._places.is_ready
        if is_ready(ACTIVE) or (self.backoff.pops_early and is_ready(BACKOFF)):
            return now
        if self._representatives.followed:
            return now
        due = self._places.find_due()
        return None if due == inf else max(now, due)

    def check(self) -> None:
        """Raises AssertionError unless each pod is in exactly one place."""
        self._places.check()
        for queued in self._in_flight:
            uid = queued.pod.uid
            assert queued.place is IN_FLIGHT, f"{uid} is in flight, not {queued.place}"
            assert uid not in self._places, f"{uid} is in flight and waits"
        for uid in self._representatives.check():
            sent = self._places.get(uid)
            assert sent is not None, f"{uid} is to be tried for others, but does not wait"
            assert sent.place not in UNSCHEDULABLE_PLACES, f"{uid} is not tried for others"

    def _enter(self, pod: Pod, label: str, now: float) -> None:
        older = self._places.find_by_key(pod.key)
        if older is not None:
            self._take(older)
        self._make_active(QueuedPod(pod, now, next(self._arrivals)), label, now)

    def _reconsider(self, queued: QueuedPod, old: Pod, now: float) -> bool:
        """Wakes an unschedulable pod if a change of the pod itself may help it."""
        if queued.place not in UNSCHEDULABLE_PLACES:
            return False
        for event in pod_events(old, queued.pod, assigned=False):
            queue_event = self._listeners.identify(event, old, queued.pod)
            answer = self._listeners.answer(queued, queue_event)
            if answer is not STAY:
                self._move_by(queued, answer, event.label, now)
            if queued.place not in UNSCHEDULABLE_PLACES:
                return True
        return False

    def _find_waiting(self, queue_event: QueueEvent) -> list[LikePods | Companions]:
        unschedulable = self._places.unschedulable
        if queue_event.event.is_wildcard:
            return unschedulable.everybody()
        return unschedulable.find(queue_event) if len(unschedulable) else []

    def _wake(
        self,
        like_pods: LikePods,
        queue_event: QueueEvent,
        concerns: Callable[[Pod], bool] | None,
    ) -> None:
        """Wakes like pods if the event may help them: one is asked for all."""
        label, companions = queue_event.event.label, like_pods.companions
        ask = self._listeners.answer
        if queue_event.is_about(like_pods):
            for queued in _meant(like_pods, concerns):
                self._wake_by(queued, ask(queued, queue_event), label)
            return
        asked = like_pods.any
        answer = STAY if asked is None else ask(asked, queue_event)
        if answer is STAY:
            return
        is_open = answer is not AFTER_BACKOFF or concerns is not None
        if is_open or companions is None or companions.span_templates:
            for queued in _meant(like_pods, concerns):
                self._wake_by(queued, answer, label)
        else:
            self._send_one(companions, label)

    def _wake_together(
        self,
        companions: Companions,
        queue_event: QueueEvent,
        concerns: Callable[[Pod], bool] | None,
    ) -> None:
        """Wakes one of some companions, if the event may help it."""
        first = companions.first(self._latest)
        if concerns is None and not queue_event.is_about(companions) and first is not None:
            if companions.is_represented:
                return
            answer = self._listeners.answer(first, queue_event)
            if answer is AFTER_BACKOFF:
                self._send_one(companions, queue_event.event.label)
                return
            if answer is STAY and not companions.span_templates:
                return
        for like_pods in list(companions.members):
            self._wake(like_pods, queue_event, concerns)

    def _send_one(self, companions: Companions, label: str) -> None:
        """Wakes one of some companions, unless another one is on its way already."""
        while not companions.is_represented:
            queued = companions.first(self._latest)
            if queued is None:
                return
            self._move_by(queued, AFTER_BACKOFF, label, self._latest)
            if queued.place not in UNSCHEDULABLE_PLACES:
                self._representatives.send(queued.pod.uid, companions, label)

    def _send_next(self, now: float) -> None:
        """Wakes another pod wherever the one before has not shown that all fail."""
        self._latest = now
        for companions, label in self._representatives.take_followed():
            self._send_one(companions, label)

    def _wake_by(self, queued: QueuedPod, answer: WakeAnswer, label: str) -> None:
        if answer is not STAY:
            self._move_by(queued, answer, label, self._latest)

    def _move_by(self, queued: QueuedPod, answer: WakeAnswer, label: str, now: float) -> None:
        if answer is STAY:
            self._move(queued, UNSCHEDULABLE, label)
        elif answer is AFTER_BACKOFF and queued.backs_off(now):
            if not self.backoff.pops_early or self._is_admitted(queued, label):
                early = queued.waking_plugins and not queued.is_costly
                self._move(queued, BACKOFF if early else ERROR_BACKOFF, label)
        else:
            self._make_active(queued, label, now)

    def _make_active(self, queued: QueuedPod, label: str, now: float) -> None:
        # What may be popped out of its backoff was asked when it went there.
        asked = self.backoff.pops_early and queued.place in BACKING_OFF
        if asked or self._is_admitted(queued, label):
            self._activate(queued, label, now)

    def _activate(self, queued: QueuedPod, label: str, now: float) -> None:
        if queued.initial_attempt is None:
            queued.initial_attempt = now
        self._move(queued, ACTIVE, label)

    def _is_admitted(self, queued: QueuedPod, label: str) -> bool:
        """Whether the pod may be queued; one that may not is gated."""
        answer = self._admit(queued.pod, queued.gated_by)
        if answer is None:
            queued.gated_by, queued.refusal = "", None
            return True
        before = queued.gated_by if queued.place is GATED and not queued.was_flushed else ""
        queued.gated_by, queued.refusal = answer
        if before == queued.gated_by and before in queued.rejectors:
            # A pod with several victims hears of each: it stays where it is.
            self.incoming[QUEUES[GATED], label] += 1
            return False
        queued.rejectors |= {queued.gated_by}
        queued.was_flushed = False
        self._move(queued, GATED, label)
        return False

    def _move(self, queued: QueuedPod, place: Place, label: str) -> None:
        self._places.move(queued, place)
        if place in UNSCHEDULABLE_PLACES:
            self._representatives.end(queued.pod.uid)
        self.incoming[QUEUES[place], label] += 1

    def _take(self, queued: QueuedPod) -> None:
        self._places.take(queued)
        self._representatives.end(queued.pod.uid)

    def _record(self, queue_event: QueueEvent) -> None:
        if self._in_flight.pods and queue_event.is_heard:
            self._in_flight.record(queue_event)


def _meant(pods: Iterable[QueuedPod], concerns: Callable[[Pod], bool] | None) -> list[QueuedPod]:
    return [each for each in pods if concerns is None or concerns(each.pod)]
