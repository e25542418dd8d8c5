"""Events have two forms: that of core/v1, which is stored, and that of events.k8s.io/v1."""

from __future__ import annotations

from .kinds import View
from .wire import Json

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


def _inward(item: Json) -> Json:
    stored = {_NAMES.get(key, key): value for key, value in item.items()}
    return {**stored, "apiVersion": "v1"}


def _outward(item: Json) -> Json:
    shown = {_BACK.get(key, key): value for key, value in item.items()}
    return {**shown, "apiVersion": "events.k8s.io/v1"}


EVENTS_VIEW = View(
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
