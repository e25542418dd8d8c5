"""What controllers tell about objects: events, of many alike only some."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mooring.embedded.event_objects import Teller, Told, event_object
from mooring.embedded.wire import Json

from .cluster import Cluster

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
class _Spoken:
    """What was told about an object, and how much more may be."""

    left: float
    since: float
    #: Keys of events, by what they tell.
    told: dict[Told, str] = field(default_factory=dict)

    def may_speak(self, now: float) -> bool:
        gained = max(now - self.since, 0.0) / _SECONDS_BETWEEN
        self.left, self.since = min(self.left + gained, _AT_ONCE), now
        if self.left < 1:
            return False
        self.left -= 1
        return True

    def place_of(self, told: Told) -> Told:
        """What stands for this: itself, or all that are alike."""
        combined = Told(told.reason, _COMBINED, told.type)
        if told in self.told:
            return told
        alike = sum((each.reason, each.type) == (told.reason, told.type) for each in self.told)
        return combined if alike >= _ALIKE - 1 else told


class Recorder:
    """Writes the events of one controller."""

    def __init__(self, cluster: Cluster, component: str) -> None:
        self._cluster = cluster
        self._teller = Teller(component)
        self._spoken: dict[str, _Spoken] = {}

    def tell(self, about: Json, reason: str, message: str, kind: str = "Normal") -> None:
        """Tells something about an object; the same again is counted."""
        spoken, told = self._about(about["metadata"]["uid"]), Told(reason, message, kind)
        if not spoken.may_speak(self._cluster.now):
            return
        place = spoken.place_of(told)
        text = message if place is told else _COMBINED + message
        known = self._cluster.api.store.table(EVENTS).entries.get(spoken.told.get(place, ""))
        if known is None:
            spoken.told[place] = self._create(about, Told(reason, text, kind))
            return
        again: dict[str, Any] = known.object
        again |= {
            "count": again["count"] + 1,
            "lastTimestamp": self._cluster.now_text,
            "message": text,
        }
        events = self._cluster.api.kinds[EVENTS]
        self._cluster.api.edit(events, known.namespace, known.name, lambda _: again)

    def _create(self, about: Json, told: Told) -> str:
        event = event_object(about, told, self._teller, self._cluster.now_text)
        # Whoever lists them by name has them in order.
        order = int(self._cluster.now * _TICKS)
        event["metadata"]["generateName"] += f"{order:x}."
        # Nodes have no namespace; what is told about them is in this one.
        namespace = about["metadata"].get("namespace", "default")
        api = self._cluster.api
        return api.create(api.kinds[EVENTS], namespace, event).key

    def _about(self, uid: str) -> _Spoken:
        spoken = self._spoken.pop(uid, None) or _Spoken(_AT_ONCE, self._cluster.now)
        self._spoken[uid] = spoken
        if len(self._spoken) > _MOST_REMEMBERED:
            # Those that were told of last come last.
            del self._spoken[next(iter(self._spoken))]
        return spoken
