"""Conditions, and what those of a pod tell about its placing."""

from __future__ import annotations

from collections.abc import Iterable

from .meta import Wire


class Condition(Wire, frozen=True):
    """A condition of a pod or a node."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


def refusal(conditions: Iterable[Condition] | None) -> str | None:
    """Why a pod was not placed when it was tried last; None if it was not tried in vain."""
    for condition in conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message or ""
    return None
