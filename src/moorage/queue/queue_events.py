"""Events in the queue: their listeners, whether they concern a pod, and which ones pods missed."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Container, Hashable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal

import msgspec
import numpy as np

from moorage.documents.errors import STOPPED
from moorage.framework.observe import Observer
from moorage.framework.plugin_fence import expect
from moorage.framework.wakeups import Action, ClusterEvent, Reads, Resource, Wakeup, on
from moorage.objects.pod import Pod

from .entity import Entity, EntityKey, Gang

Wakeups = Mapping[str, Mapping[str, tuple[Wakeup, ...]]]
#: By profile, each plugin that listens to an event, and what it has registered for it.
Heard = Mapping[str, Mapping[str, tuple[Wakeup, ...]]]


#: What an event means for a waiting pod.
WakeAnswer = Literal["stay", "after backoff", "at once"]


class QueueEvent(msgspec.Struct, frozen=True, eq=False):
    """An event, the object before and after it, and its listeners."""

    event: ClusterEvent
    old: Any
    new: Any
    heard: Heard

    @property
    def is_heard(self) -> bool:
        return bool(self.heard) or self.event.is_wildcard

    def is_about(self, uids: Container[str]) -> bool:
        """Whether the object is one of these pods."""
        old, new = self.old, self.new
        return (isinstance(old, Pod) and old.uid in uids) or (
            isinstance(new, Pod) and new.uid in uids
        )

    def names(self, pod: Pod) -> bool:
        """Whether a wildcard event concerns this pod: if it carries an object, only that one."""
        return self.new is None or (isinstance(self.new, Pod) and self.new.uid == pod.uid)


class Listeners:
    """The registrations of all profiles."""

    def __init__(self, wakeups: Wakeups, observer: Observer) -> None:
        self._wakeups = {
            profile: {name: _add_taints(registered) for name, registered in plugins.items()}
            for profile, plugins in wakeups.items()
        }
        self._observer = observer
        self._heard: dict[tuple[Resource | str, Action], Heard] = {}
        #: By profile and plugins: what their hints read, and whether they need no signature.
        self._readers: dict[tuple[str, frozenset[str]], tuple[tuple[Reads, ...], bool]] = {}

    def registered(self, profile: str, plugin: str) -> tuple[Wakeup, ...]:
        """Returns the registrations of a plugin of a profile."""
        return self._wakeups.get(profile, {}).get(plugin, ())

    def identify(self, event: ClusterEvent, old: Any, new: Any) -> QueueEvent:
        """Returns the event together with its listeners."""
        kind = (event.resource, event.action)
        heard = self._heard.get(kind)
        if heard is None:
            heard = self._heard[kind] = self._find_listeners(event)
        return QueueEvent(event, old, new, heard)

    def read(self, queued: Entity) -> Hashable:
        """Returns what must be equal, besides the template, for hints to answer pods alike."""
        if queued.is_costly or isinstance(queued, Gang):
            return queued.key
        key = queued.pod.spec.scheduler_name, queued.waking_plugins
        known = self._readers.get(key)
        if known is None:
            known = self._readers[key] = self._find_readers(*key)
        readers, are_alike = known
        if not are_alike:
            return queued.key
        try:
            return tuple([reads(queued.pod) for reads in readers])
        except STOPPED:  # whatever a plugin raises: such a pod is like none
            return queued.key

    def answer(self, queued: Entity, queue_event: QueueEvent) -> WakeAnswer:
        """Whether the entity is worth another try, as the plugins that rejected it judge."""
        if queue_event.event.is_wildcard:
            return "after backoff" if queue_event.names(queued.pod) else "stay"
        heard = queue_event.heard.get(queued.pod.spec.scheduler_name)
        if heard is None:
            return "stay"
        if queued.is_costly:
            # What plugins say of such a pod may take as long as trying it, which waits its time.
            return "stay" if heard.keys().isdisjoint(queued.waking_plugins) else "after backoff"
        pod = queued.asked
        if queued.pending and self._any_agrees(queued.pending, heard, pod, queue_event):
            return "at once"
        if self._any_agrees(queued.rejectors, heard, pod, queue_event):
            return "after backoff"
        return "stay"

    def answer_missed(self, queued: Entity, missed: tuple[QueueEvent, ...] | None) -> WakeAnswer:
        """Returns what the events that a failed pod missed mean for it."""
        if missed is None or not queued.waking_plugins:
            return "after backoff"
        best: WakeAnswer = "stay"
        for queue_event in missed:
            answer = self.answer(queued, queue_event)
            if answer == "at once":
                return answer
            if answer == "after backoff":
                best = answer
                if not queued.pending:
                    break
        return best

    def _any_agrees(
        self,
        plugins: frozenset[str],
        heard: Mapping[str, tuple[Wakeup, ...]],
        pod: Pod,
        queue_event: QueueEvent,
    ) -> bool:
        for plugin in plugins:
            wakeups = heard.get(plugin)
            if wakeups is not None and self._agrees(plugin, wakeups, pod, queue_event):
                return True
        return False

    def _find_listeners(self, event: ClusterEvent) -> Heard:
        found: dict[str, dict[str, tuple[Wakeup, ...]]] = {}
        for profile, plugins in self._wakeups.items():
            for name, registered in plugins.items():
                hearing = tuple(each for each in registered if each.event.hears(event))
                if hearing:
                    found.setdefault(profile, {})[name] = hearing
        return found

    def _find_readers(
        self, profile: str, plugins: frozenset[str]
    ) -> tuple[tuple[Reads, ...], bool]:
        wakeups = [each for name in sorted(plugins) for each in self.registered(profile, name)]
        readers = dict.fromkeys(each.reads for each in wakeups if each.reads is not None)
        return tuple(readers), all(each.alike for each in wakeups)

    def _agrees(
        self, plugin: str, wakeups: tuple[Wakeup, ...], pod: Pod, queue_event: QueueEvent
    ) -> bool:
        began = self._observer.clock()
        result = "QueueSkip"
        try:
            for wakeup in wakeups:
                hint = wakeup.hint
                answer = True if hint is None else hint(pod, queue_event.old, queue_event.new)
                if answer is not True and answer is not False:
                    answer = _boolean(answer)
                if answer:
                    result = "Queue"
                    return True
        except STOPPED as error:  # whatever a plugin raises
            result = "Error"
            # A try for nothing is better than a pod that a broken hint keeps waiting.
            self._observer.hint_broke(plugin, pod.key, queue_event.event.label, error)
            return True
        finally:
            self._observer.hint_answered(plugin, queue_event.event.label, result, began)
        return False


def _boolean(answer: object) -> bool:
    """Accepts a boolean of NumPy; any other value is a mistake, such as a forgotten `return`."""
    expect(answer, bool, np.bool_)
    return bool(answer)


def _add_taints(registered: tuple[Wakeup, ...]) -> tuple[Wakeup, ...]:
    # A new node usually carries taints at first, so who waits for nodes must hear when they go.
    heard = Action(0)
    for each in registered:
        if each.event.resource is Resource.NODE:
            heard |= each.event.action
    if Action.ADD in heard and Action.UPDATE_NODE_TAINT not in heard:
        return (*registered, on(Resource.NODE, Action.UPDATE_NODE_TAINT))
    return registered


class InFlight:
    """Remembers events for as long as an entity that was popped before them is in flight."""

    def __init__(self) -> None:
        #: With how much had happened before: in the order of their pop.
        self._started: OrderedDict[EntityKey, tuple[Entity, int]] = OrderedDict()
        self._events: deque[QueueEvent] = deque()
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._started)

    def __contains__(self, key: EntityKey) -> bool:
        return key in self._started

    def __iter__(self) -> Iterator[Entity]:
        return (queued for queued, _ in self._started.values())

    def get(self, key: EntityKey) -> Entity | None:
        """Returns an entity in flight."""
        started = self._started.get(key)
        return started[0] if started else None

    @property
    def remembered(self) -> tuple[QueueEvent, ...]:
        """Returns the events that some entity in flight may have missed, oldest first."""
        return tuple(self._events)

    def start(self, queued: Entity) -> None:
        """Adds an entity; events from now on concern it."""
        self._started[queued.key] = queued, self._dropped + len(self._events)

    def end(self, key: EntityKey) -> tuple[QueueEvent, ...] | None:
        """Removes an entity; returns the events since it was popped, None if it is not in flight.

        Events that no other entity needs are forgotten.
        """
        ended = self._started.pop(key, None)
        if ended is None:
            return None
        ended[0].place = "nowhere"
        if not self._events:
            return ()
        missed = tuple(islice(self._events, ended[1] - self._dropped, None))
        _, oldest = next(iter(self._started.values()), (None, self._dropped + len(self._events)))
        while self._dropped < oldest:
            self._events.popleft()
            self._dropped += 1
        return missed

    def record(self, queue_event: QueueEvent) -> None:
        """Remembers an event if an entity is in flight and a plugin listens to it."""
        if self._started and queue_event.is_heard:
            self._events.append(queue_event)
