"""Conditions in the status of an object."""

from __future__ import annotations

from .wire import Json


def set_condition(holder: Json, now: str, **condition: str) -> None:
    """Sets a condition; its time moves only when it comes true or ceases to be."""
    conditions = holder.setdefault("conditions", [])
    for at, each in enumerate(conditions):
        if each.get("type") == condition["type"]:
            same = each.get("status") == condition["status"]
            since = each.get("lastTransitionTime", now) if same else now
            conditions[at] = {**condition, "lastProbeTime": None, "lastTransitionTime": since}
            return
    conditions.append({**condition, "lastProbeTime": None, "lastTransitionTime": now})
