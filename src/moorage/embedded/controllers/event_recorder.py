"""The events that controllers write, and the pods that they make and remove."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from moorage.embedded.kinds.event_kinds import EventSource, EventText, event_object
from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.store.object_store import Json, StoredObject

from .cache import PODS
from .controller import ControllerApi
from .items import PodItem

EVENTS = "events"

# As in kube-controller-manager: so many events at once about an object, then one in a while.
_AT_ONCE = 25
_SECONDS_BETWEEN = 300.0
# So many events that differ in their message alone are combined.
_ALIKE = 10
_COMBINED = "(combined from similar events): "
# Names of events within a second differ by this many ticks.
_TICKS = 1_000_000
# The reports on so many objects are remembered.
_MOST_REMEMBERED = 4096


@dataclass(slots=True)
class _Reports:
    """The events about an object so far, and how many more are allowed."""

    left: float
    since: float
    #: Keys of the events that were written.
    keys: dict[EventText, str] = field(default_factory=dict)

    def may_report(self, now: float) -> bool:
        gained = max(now - self.since, 0.0) / _SECONDS_BETWEEN
        self.left, self.since = min(self.left + gained, _AT_ONCE), now
        if self.left < 1:
            return False
        self.left -= 1
        return True

    def stand_in_for(self, text: EventText) -> EventText:
        """Returns the event that stands for this one: itself, or the combined one of many alike."""
        combined = EventText(text.reason, _COMBINED, text.type)
        if text in self.keys:
            return text
        alike = sum((each.reason, each.type) == (text.reason, text.type) for each in self.keys)
        return combined if alike >= _ALIKE - 1 else text


class EventRecorder:
    """Writes the events of one controller."""

    def __init__(self, cluster: ControllerApi, component: str) -> None:
        self._cluster = cluster
        self._source = EventSource(component)
        self._reports: dict[str, _Reports] = {}

    def record(self, about: Json, reason: str, message: str, kind: str = "Normal") -> None:
        """Records an event about an object; the same event again is counted."""
        reports, text = self._reports_on(about["metadata"]["uid"]), EventText(reason, message, kind)
        if not reports.may_report(self._cluster.now):
            return
        place = reports.stand_in_for(text)
        message = message if place is text else _COMBINED + message
        known = self._cluster.api.store.table(EVENTS).entries.get(reports.keys.get(place, ""))
        if known is None:
            reports.keys[place] = self._create(about, EventText(reason, message, kind))
            return
        again: dict[str, Any] = known.object
        again |= {
            "count": again["count"] + 1,
            "lastTimestamp": self._cluster.now_text,
            "message": message,
        }
        events = self._cluster.api.kinds[EVENTS]
        self._cluster.api.edit(events, known.namespace, known.name, lambda _: again)

    def _create(self, about: Json, text: EventText) -> str:
        event = event_object(about, text, self._source, self._cluster.now_text)
        # Sorted by name, events are in order of time.
        order = int(self._cluster.now * _TICKS)
        event["metadata"]["generateName"] += f"{order:x}."
        # Nodes have no namespace; their events are in this one.
        namespace = about["metadata"].get("namespace", "default")
        api = self._cluster.api
        return api.create(api.kinds[EVENTS], namespace, event).key

    def _reports_on(self, uid: str) -> _Reports:
        reports = self._reports.pop(uid, None) or _Reports(_AT_ONCE, self._cluster.now)
        self._reports[uid] = reports
        if len(self._reports) > _MOST_REMEMBERED:
            # The latest come last.
            del self._reports[next(iter(self._reports))]
        return reports


@dataclass(frozen=True, slots=True)
class PodKeeper:
    """Creates and deletes pods for owners of one kind, and records events about it."""

    cluster: ControllerApi
    recorder: EventRecorder
    made: str = "Created pod: {pod}"
    removed: str = "Deleted pod: {pod}"

    def create(self, owner: Json, pod: Json) -> StoredObject:
        try:
            entry = self.cluster.create(PODS, owner["metadata"]["namespace"], pod)
        except RequestRefused as refusal:
            message = f"Error creating: {refusal.message}"
            self.recorder.record(owner, "FailedCreate", message, "Warning")
            raise
        self._record(owner, "SuccessfulCreate", self.made, entry.name)
        return entry

    def delete(self, owner: Json, pod: PodItem) -> None:
        self.cluster.delete(pod)
        self._record(owner, "SuccessfulDelete", self.removed, pod.name)

    def _record(self, owner: Json, reason: str, text: str, pod: str) -> None:
        message = text.format(pod=pod, owner=owner["metadata"]["name"])
        self.recorder.record(owner, reason, message)
