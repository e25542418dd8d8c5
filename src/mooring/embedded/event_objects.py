"""Events as objects: what somebody has to tell about another object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .wire import Json

# The longest name of an object that leaves room for a suffix.
_LONGEST_PREFIX = 200


@dataclass(frozen=True, slots=True)
class Told:
    """What is told."""

    reason: str
    message: str
    type: str = "Normal"


@dataclass(frozen=True, slots=True)
class Teller:
    """Who tells it, and on which node, if on any."""

    component: str
    host: str = ""


def event_object(about: Json, told: Told, teller: Teller, now: str) -> Json:
    """The event that tells something about an object, for the first time."""
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
        "reason": told.reason,
        "message": told.message,
        "type": told.type,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": source,
        "reportingComponent": teller.component,
        "reportingInstance": teller.host,
    }
