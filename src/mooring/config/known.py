"""The extension points of a profile, and what is known of a plugin before it is built."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

#: The extension points, as the configuration spells them, in the order in which they run.
POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)

#: Stands for every point that a plugin extends; in files only.
MULTI_POINT = "multiPoint"


@dataclass(frozen=True, slots=True)
class KnownPlugin:
    """Which points a plugin extends and the type of its args, if it takes any."""

    points: frozenset[str]
    args: type[msgspec.Struct] | None = None
