"""The events that controllers write, and the pods that they make and remove."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mooring.embedded.kinds.event_kinds import EventSource, EventText, event_object
from mooring.embedded.refusals import RequestRefused
from mooring.embedded.store.table import Json, StoredObject

from .cache import PODS
from .controller import ControllerApi
from .items import PodItem

EVENTS = "events"

# Others do it in the same measure, so that an owner of ten thousand pods has no more to say here
# than there: so much at once about an object, and after that once in a while.
_AT_ONCE = 25
_SECONDS_BETWEEN = 300.0
# From so many on that differ in their message alone, they are told as one.
_ALIKE = 10
_COMBINED = "(combined from similar events): "
# What happens within a second is told apart in names.
_TICKS = 1_000_000
# About so many objects it is remembered what was told.
_MOST_REMEMBERED = 4096


@dataclass(slots=True)
class _Reports:
    """What was told about an object, and how much more may be."""

    left: float
    since: float
    #: Keys of events, by what they tell.
    told: dict[EventText, str] = field(default_factory=dict)

    def may_speak(self, now: float) -> bool:
        gained = max(now - self.since, 0.0) / _SECONDS_BETWEEN
        self.left, self.since = min(self.left + gained, _AT_ONCE), now
        if self.left < 1:
            return False
        self.left -= 1
        return True

    def place_of(self, told: EventText) -> EventText:
        """What stands for this: itself, or all that are alike."""
        combined = EventText(told.reason, _COMBINED, told.type)
        if told in self.told:
            return told
        alike = sum((each.reason, each.type) == (told.reason, told.type) for each in self.told)
        return combined if alike >= _ALIKE - 1 else told


class EventRecorder:
    """Writes the events of one controller."""

    def __init__(self, cluster: ControllerApi, component: str) -> None:
        self._cluster = cluster
        self._teller = EventSource(component)
        self._spoken: dict[str, _Reports] = {}

    def tell(self, about: Json, reason: str, message: str, kind: str = "Normal") -> None:
        """Tells something about an object; the same again is counted."""
        spoken, told = self._about(about["metadata"]["uid"]), EventText(reason, message, kind)
        if not spoken.may_speak(self._cluster.now):
            return
        place = spoken.place_of(told)
        text = message if place is told else _COMBINED + message
        known = self._cluster.api.store.table(EVENTS).entries.get(spoken.told.get(place, ""))
        if known is None:
            spoken.told[place] = self._create(about, EventText(reason, text, kind))
            return
        again: dict[str, Any] = known.object
        again |= {
            "count": again["count"] + 1,
            "lastTimestamp": self._cluster.now_text,
            "message": text,
        }
        events = self._cluster.api.kinds[EVENTS]
        self._cluster.api.edit(events, known.namespace, known.name, lambda _: again)

    def _create(self, about: Json, told: EventText) -> str:
        event = event_object(about, told, self._teller, self._cluster.now_text)
        # Whoever lists them by name has them in order.
        order = int(self._cluster.now * _TICKS)
        event["metadata"]["generateName"] += f"{order:x}."
        # Nodes have no namespace; what is told about them is in this one.
        namespace = about["metadata"].get("namespace", "default")
        api = self._cluster.api
        return api.create(api.kinds[EVENTS], namespace, event).key

    def _about(self, uid: str) -> _Reports:
        spoken = self._spoken.pop(uid, None) or _Reports(_AT_ONCE, self._cluster.now)
        self._spoken[uid] = spoken
        if len(self._spoken) > _MOST_REMEMBERED:
            # Those that were told of last come last.
            del self._spoken[next(iter(self._spoken))]
        return spoken


@dataclass(frozen=True, slots=True)
class PodKeeper:
    """Makes and removes pods for owners of one kind."""

    cluster: ControllerApi
    recorder: EventRecorder
    made: str = "Created pod: {pod}"
    removed: str = "Deleted pod: {pod}"

    def create(self, owner: Json, pod: Json) -> StoredObject:
        try:
            entry = self.cluster.create(PODS, owner["metadata"]["namespace"], pod)
        except RequestRefused as refusal:
            message = f"Error creating: {refusal.message}"
            self.recorder.tell(owner, "FailedCreate", message, "Warning")
            raise
        self._tell(owner, "SuccessfulCreate", self.made, entry.name)
        return entry

    def delete(self, owner: Json, pod: PodItem) -> None:
        self.cluster.delete(pod)
        self._tell(owner, "SuccessfulDelete", self.removed, pod.name)

    def _tell(self, owner: Json, reason: str, text: str, pod: str) -> None:
        message = text.format(pod=pod, owner=owner["metadata"]["name"])
        self.recorder.tell(owner, reason, message)
