"""The plugin Coscheduling of scheduler-plugins, which configurations may name.

Mooring decides groups itself. A profile that enables the plugin is accepted: its PodGroups count as
if the feature gate Coscheduling were on. The plugin itself does not run.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mooring.objects.meta import Wire

from .configuration import (
    PluginDocument,
    PluginsDocument,
    PluginSetDocument,
    ProfileDocument,
)

NAME = "Coscheduling"

#: Where it can be enabled.
_POINTS = frozenset(
    {
        "multiPoint",
        "queueSort",
        "preFilter",
        "postFilter",
        "permit",
        "reserve",
        "postBind",
    }
)


class CoschedulingArgs(Wire, frozen=True):
    """The args of the plugin. They are read to refuse misspelt fields, and have no effect."""

    permit_waiting_time_seconds: int | None = None
    pod_group_backoff_seconds: int | None = None
    pod_group_reject_percentage: int | None = None


def uses_coscheduling(profiles: Iterable[ProfileDocument]) -> bool:
    """Whether a profile enables the plugin anywhere."""
    return any(
        plugin.name == NAME
        for profile in profiles
        for listed in profile.plugins.by_point().values()
        for plugin in listed.enabled
    )


def without_coscheduling(written: PluginsDocument) -> PluginsDocument:
    """Returns a profile's plugins without this one.

    If it sorted the queue, the default queue-sort plugin replaces it.
    """
    changed: dict[str, PluginSetDocument] = {}
    for field in msgspec.structs.fields(written):
        listed: PluginSetDocument = getattr(written, field.name)
        enabled = tuple(each for each in listed.enabled if each.name != NAME)
        if field.encode_name in _POINTS and len(enabled) < len(listed.enabled):
            changed[field.name] = PluginSetDocument(enabled, listed.disabled)
    if changed.keys() & {"multi_point", "queue_sort"}:
        sorting = changed.get("queue_sort", written.queue_sort)
        if not sorting.enabled:
            changed["queue_sort"] = _DEFAULT_SORT
    return msgspec.structs.replace(written, **changed)


# The queue-sort plugin of the default profile, and no other.
_DEFAULT_SORT = PluginSetDocument((PluginDocument("PrioritySort"),), (PluginDocument("*"),))
