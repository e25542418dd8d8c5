"""Turns a profile of a file into the profile to use: its plugins and their args.

A profile may enable the plugin Coscheduling of scheduler-plugins. Moorage decides groups itself, so
the plugin does not run: its PodGroups count as if the feature gate Coscheduling were on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.documents import conversion
from moorage.documents.errors import Problem, Problems, child, describe, item
from moorage.objects.meta import Wire

from .configuration import (
    API_VERSION,
    PluginConfigDocument,
    PluginDocument,
    PluginsDocument,
    PluginSetDocument,
    ProfileConfiguration,
    ProfileDocument,
)
from .gates import FeatureGates
from .group_plugins import (
    GROUP_POINTS,
    Points,
    drop_group_plugins,
    find_group_problems,
    find_placement_weights,
)
from .plugin_sets import (
    ALL,
    IN_TREE,
    MULTI_POINT,
    POINTS,
    REMOVED,
    EnabledPlugin,
    KnownPlugin,
    PluginSet,
    default_plugins,
    expand,
    merge,
)

COSCHEDULING = "Coscheduling"

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
        plugin.name == COSCHEDULING
        for profile in profiles
        for listed in profile.plugins.by_point().values()
        for plugin in listed.enabled
    )


def without_coscheduling(written: PluginsDocument) -> PluginsDocument:
    """Returns a profile's plugins without this one.

    If it sorted the queue, the default queue-sort plugin replaces it.
    """
    changed: dict[str, PluginSetDocument] = {}
    for field in conversion.find_fields(type(written)):
        listed: PluginSetDocument = getattr(written, field.name)
        enabled = tuple(each for each in listed.enabled if each.name != COSCHEDULING)
        if field.encode_name in _POINTS and len(enabled) < len(listed.enabled):
            changed[field.name] = PluginSetDocument(enabled, listed.disabled)
    if changed.keys() & {"multi_point", "queue_sort"}:
        sorting = changed.get("queue_sort", written.queue_sort)
        if not sorting.enabled:
            changed["queue_sort"] = _DEFAULT_SORT
    return msgspec.structs.replace(written, **changed)


# The queue-sort plugin of the default profile, and no other.
_DEFAULT_SORT = PluginSetDocument((PluginDocument("PrioritySort"),), (PluginDocument("*"),))


def why_unusable(name: str, known: Mapping[str, KnownPlugin]) -> str | None:
    """Returns why a file cannot name a plugin; None if it can."""
    if not name:
        return "is required"
    if name in known:
        return None
    if name in REMOVED:
        return f"plugin {describe(name)} was removed, NodeVolumeLimits does its work"
    if name in IN_TREE:
        return f"plugin {describe(name)} is not supported by Moorage yet"
    return f"unknown plugin {describe(name)}"


def read_args(
    written: Sequence[PluginConfigDocument],
    path: str,
    known: Mapping[str, KnownPlugin],
    problems: Problems,
) -> dict[str, msgspec.Struct | None]:
    """Reads the args of every plugin that has some in the file."""
    read: dict[str, msgspec.Struct | None] = {}
    for index, entry in enumerate(written):
        at = item(path, index)
        if entry.name == COSCHEDULING:
            _decode_entry(entry, CoschedulingArgs, child(at, "args"), problems)
            continue
        wrong = why_unusable(entry.name, known)
        if wrong is None and entry.name in read:
            wrong = f"args of plugin {describe(entry.name)} are given twice"
        if wrong is None:
            read[entry.name] = _decode_entry(
                entry, known[entry.name].args, child(at, "args"), problems
            )
        else:
            problems.add(child(at, "name"), wrong)
    return read


def decode_args(
    wanted: type[msgspec.Struct], raw: Mapping[str, Any], path: str, problems: Problems
) -> msgspec.Struct | None:
    """Decodes and checks args of a type."""
    args: msgspec.Struct | None = conversion.convert(wanted, raw, path, problems)
    conversion.check(args, path, problems)
    return args


def _decode_entry(
    entry: PluginConfigDocument, wanted: type[msgspec.Struct] | None, path: str, problems: Problems
) -> msgspec.Struct | None:
    raw = dict(entry.args or {})
    for field, expected in (("apiVersion", API_VERSION), ("kind", f"{entry.name}Args")):
        found = raw.pop(field, None)
        if found not in (None, "", expected):
            problems.add(child(path, field), f"must be {describe(expected)}, got {describe(found)}")
    if wanted is not None:
        return decode_args(wanted, raw, path, problems)
    if raw:
        problems.add(path, f"plugin {describe(entry.name)} takes no args")
    return None


@dataclass(frozen=True, slots=True)
class ProfileReader:
    """Merges profiles with the default one and collects what is wrong with them."""

    known: Mapping[str, KnownPlugin]
    gates: FeatureGates
    percentage: int
    problems: Problems

    def read(self, written: ProfileDocument, path: str) -> ProfileConfiguration:
        conversion.check(written, path, self.problems)
        points = self._points(without_coscheduling(written.plugins), child(path, "plugins"))
        runs = drop_group_plugins(points, self.gates)
        own = written.percentage_of_nodes_to_score
        return ProfileConfiguration(
            scheduler_name=written.scheduler_name or "",
            percentage_of_nodes_to_score=self.percentage if own is None else own,
            points=runs,
            placement_weights=find_placement_weights(points, self.gates),
            args=self._args(written, runs, child(path, "pluginConfig")),
        )

    def _points(self, written: PluginsDocument, path: str) -> Points:
        custom = {
            point: self._usable_plugins(point, plugins, child(path, point))
            for point, plugins in written.by_point().items()
        }
        multi_point = merge(default_plugins(self.gates), custom[MULTI_POINT])
        points = {
            point: expand(point, custom[point], multi_point, self._find_extending(point))
            for point in (*POINTS, *GROUP_POINTS)
        }
        self.problems.add_found(_find_conflicts(points, path))
        for point, message in find_group_problems(points, self.gates):
            self.problems.add(child(path, point), message)
        return points

    def _find_extending(self, point: str) -> frozenset[str]:
        return frozenset(name for name, plugin in self.known.items() if point in plugin.points)

    def _usable_plugins(self, point: str, written: PluginSetDocument, path: str) -> PluginSet:
        """Returns what a file says about a point, without plugins that cannot be there."""
        found: list[Problem] = []
        enabled: dict[str, EnabledPlugin] = {}
        for index, plugin in enumerate(written.enabled):
            wrong = self._why_misplaced(plugin.name, point)
            if wrong is None and plugin.name in enabled:
                wrong = f"plugin {describe(plugin.name)} is enabled twice"
            if wrong is None:
                enabled[plugin.name] = EnabledPlugin(plugin.name, plugin.weight)
            else:
                found.append(Problem(f"{path}.enabled[{index}].name", wrong))
        for index, plugin in enumerate(written.disabled):
            # To disable what is not there is harmless, as long as the name is right.
            wrong = why_unusable(plugin.name, self.known)
            if wrong is not None and plugin.name not in IN_TREE | REMOVED | {ALL, COSCHEDULING}:
                found.append(Problem(f"{path}.disabled[{index}].name", wrong))
        self.problems.add_found(found)
        disabled = frozenset(plugin.name for plugin in written.disabled)
        return PluginSet(tuple(enabled.values()), disabled)

    def _why_misplaced(self, name: str, point: str) -> str | None:
        wrong = why_unusable(name, self.known)
        if wrong is None and point != MULTI_POINT and point not in self.known[name].points:
            return f"plugin {describe(name)} does not extend {point}"
        return wrong

    def _args(
        self, written: ProfileDocument, points: Points, path: str
    ) -> dict[str, msgspec.Struct | None]:
        """Returns the args of the enabled plugins: those given, and defaults for the others."""
        given = read_args(written.plugin_config, path, self.known, self.problems)
        args: dict[str, msgspec.Struct | None] = {}
        for name in dict.fromkeys(plugin.name for each in points.values() for plugin in each):
            wanted = self.known[name].args
            if name in given or wanted is None:
                args[name] = given.get(name)
            else:
                args[name] = decode_args(wanted, {}, f"{path}[{name}].args", self.problems)
        return args


def compare_profiles(
    profiles: Sequence[ProfileConfiguration], path: str, problems: Problems
) -> None:
    """Checks that profiles share their queue order and have different names."""
    seen: set[str] = set()
    for index, profile in enumerate(profiles):
        at, name = item(path, index), profile.scheduler_name
        if name and name in seen:
            problems.add(child(at, "schedulerName"), f"{describe(name)} is used by another profile")
        seen.add(name)
        if profile.points["queueSort"] != profiles[0].points["queueSort"]:
            problems.add(child(at, "plugins.queueSort"), "must be the same in all profiles")
        elif _order(profile) != _order(profiles[0]):
            problems.add(
                child(at, "pluginConfig"),
                "the args of the queueSort plugin must be the same in all profiles",
            )


def _order(profile: ProfileConfiguration) -> list[msgspec.Struct | None]:
    return [profile.args[plugin.name] for plugin in profile.points["queueSort"]]


def _find_conflicts(points: Points, path: str) -> list[Problem]:
    sorts = [plugin.name for plugin in points["queueSort"]]
    found = []
    if len(sorts) != 1:
        message = f"exactly one plugin must be enabled, got {', '.join(sorts) or 'none'}"
        found.append(Problem(child(path, "queueSort"), message))
    if not points["bind"]:
        found.append(Problem(child(path, "bind"), "at least one plugin must be enabled"))
    return found
