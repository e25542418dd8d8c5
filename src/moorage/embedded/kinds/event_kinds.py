"""Events: what a component reports about another object.

They have two forms: that of core/v1, which is stored, and that of events.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from moorage.embedded.api.column import (
    UNKNOWN,
    Column,
    at,
    field_column,
    since,
    text_column,
)
from moorage.embedded.api.decoding import fill
from moorage.embedded.api.kind import (
    KindRules,
    KindView,
    ServedKind,
    make_built_in,
    make_known_kind,
)
from moorage.embedded.store.object_store import Json

_EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
# From the newer form to the stored one.
_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK = {old: new for new, old in _NAMES.items()}
# The longest name of an object that leaves room for a suffix.
_LONGEST_PREFIX = 200


@dataclass(frozen=True, slots=True)
class EventText:
    """The reason, message and type of an event."""

    reason: str
    message: str
    type: str = "Normal"


@dataclass(frozen=True, slots=True)
class EventSource:
    """The component that reports an event, and its node."""

    component: str
    host: str = ""


def event_object(about: Json, text: EventText, teller: EventSource, now: str) -> Json:
    """Makes an event about an object."""
    metadata = about["metadata"]
    source: dict[str, Any] = {"component": teller.component}
    if teller.host:
        source["host"] = teller.host
    return {
        "metadata": {"generateName": f"{metadata['name'][:_LONGEST_PREFIX]}."},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata.get("resourceVersion", ""),
        },
        "reason": text.reason,
        "message": text.message,
        "type": text.type,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": source,
        "reportingComponent": teller.component,
        "reportingInstance": teller.host,
    }


def _inward(item: Json) -> Json:
    stored = {_NAMES.get(key, key): value for key, value in item.items()}
    return {**stored, "apiVersion": "v1"}


def _outward(item: Json) -> Json:
    outer = {_BACK.get(key, key): value for key, value in item.items()}
    return {**outer, "apiVersion": "events.k8s.io/v1"}


EVENTS_VIEW = KindView(
    _inward,
    _outward,
    {
        **{
            f"regarding.{part}": f"involvedObject.{part}"
            for part in (
                "kind",
                "namespace",
                "name",
                "uid",
                "apiVersion",
                "resourceVersion",
                "fieldPath",
            )
        },
        "reportingController": "reportingComponent",
    },
)


class EventRules(KindRules):
    """The rules of events; clients sort by fields that are empty, so they are filled in."""

    def default(self, item: Json) -> None:
        fill(item, eventTime=None, firstTimestamp=None, lastTimestamp=None, source={})
        fill(item, reportingComponent="", reportingInstance="")


def _event_object(item: Json) -> str:
    about = at(item, "involvedObject", {})
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _event_source(item: Json) -> str:
    component = at(item, "source.component", "") or at(item, "reportingComponent", "")
    host = at(item, "source.host", "") or at(item, "reportingInstance", "")
    return f"{component}, {host}" if host else str(component)


def _last_time(item: Json, now: datetime) -> str:
    for path in ("series.lastObservedTime", "lastTimestamp", "eventTime"):
        moment = at(item, path, "")
        if moment:
            return since(moment, now)
    return UNKNOWN


def _first_time(item: Json, now: datetime) -> str:
    return since(at(item, "firstTimestamp", "") or at(item, "eventTime", ""), now)


def _count(item: Json) -> str:
    return str(at(item, "series.count", 0) or at(item, "count", 0) or 1)


_EVENT_COLUMNS = (
    Column("Last Seen", _last_time),
    field_column("Type", "type", ""),
    field_column("Reason", "reason", ""),
    text_column("Object", _event_object),
    field_column("Subobject", "involvedObject.fieldPath", "", wide=True),
    text_column("Source", _event_source, wide=True),
    text_column("Message", lambda item: str(at(item, "message", "")).strip()),
    Column("First Seen", _first_time, priority=1),
    text_column("Count", _count, wide=True),
    Column("Name", lambda item, _: item["metadata"]["name"], priority=1, format="name"),
)


def event_kinds() -> Iterator[ServedKind]:
    """Yields events, in both of their forms."""
    both: dict[str, Any] = {
        "short_names": ("ev",),
        "fields": _EVENT_FIELDS,
        "columns": _EVENT_COLUMNS,
    }
    yield make_built_in("", "core.v1", "Event", "events", EventRules(), **both)
    yield make_known_kind("Event", EventRules(), stored_as="events", view=EVENTS_VIEW, **both)
