"""How many pods could share answers, how many did, and which plugins prevent it for the others."""

from __future__ import annotations

import msgspec

from mooring.engine import Engine
from mooring.engine.classes.statistics import DecisionPath, Statistics


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """The encoding of all structs here."""


class PluginKeepsApart(_Part, frozen=True):
    """A plugin that prevents pods from sharing answers, how many pods these are, and why."""

    plugin: str
    pods: int
    why: str


class ProfileBatching(_Part, frozen=True):
    """The decisions of a profile since the start."""

    profile: str
    decisions: int
    #: For pods that were like one before, whether anything was reused or not.
    alike: int
    by_batch: int
    by_class: int
    apart: list[PluginKeepsApart]


def describe_batching(engine: Engine) -> bytes:
    """Returns how answers are shared, by profile, as JSON."""
    profiles = [
        _describe_profile(name, classes.statistics) for name, classes in engine.classes.items()
    ]
    return msgspec.json.encode({"items": profiles})


def _describe_profile(name: str, statistics: Statistics) -> ProfileBatching:
    apart = [
        PluginKeepsApart(plugin, count, "tells pods of one owner apart")
        for plugin, count in statistics.apart.items()
    ]
    unsigned = [
        PluginKeepsApart(plugin, count, f"does not sign them ({why.value})")
        for (plugin, why), count in statistics.unsigned.items()
    ]
    by_batch = statistics.paths[DecisionPath.BATCH]
    return ProfileBatching(
        name,
        statistics.decisions,
        statistics.alike,
        by_batch,
        statistics.reused - by_batch,
        sorted([*apart, *unsigned], key=lambda each: (-each.pods, each.plugin)),
    )
