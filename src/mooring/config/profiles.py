"""From a profile as written to the profile in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from . import strict
from .args import decode_args, read_args, unusable
from .configuration import ProfileConfiguration
from .defaults import IN_TREE, REMOVED
from .known import MULTI_POINT, POINTS, KnownPlugin
from .merge import ALL, EnabledPlugin, PluginSet, expand, merge
from .problems import Problem, Problems, child, item, shown
from .written import WrittenPlugins, WrittenPluginSet, WrittenProfile

Points = Mapping[str, tuple[EnabledPlugin, ...]]


@dataclass(frozen=True, slots=True)
class ProfileReader:
    """Merges profiles with the default one and collects what is wrong with them."""

    known: Mapping[str, KnownPlugin]
    default: PluginSet
    percentage: int
    problems: Problems

    def read(self, written: WrittenProfile, path: str) -> ProfileConfiguration:
        strict.check(written, path, self.problems)
        points = self._points(written.plugins, child(path, "plugins"))
        own = written.percentage_of_nodes_to_score
        return ProfileConfiguration(
            scheduler_name=written.scheduler_name or "",
            percentage_of_nodes_to_score=self.percentage if own is None else own,
            points=points,
            args=self._args(written, points, child(path, "pluginConfig")),
        )

    def _points(self, written: WrittenPlugins, path: str) -> Points:
        custom = {
            point: self._usable(point, plugins, child(path, point))
            for point, plugins in written.by_point().items()
            if point in (MULTI_POINT, *POINTS)
        }
        multi_point = merge(self.default, custom[MULTI_POINT])
        points = {
            point: expand(point, custom[point], multi_point, self._extending(point))
            for point in POINTS
        }
        self.problems.add_found(_unworkable(points, path))
        return points

    def _extending(self, point: str) -> frozenset[str]:
        return frozenset(name for name, plugin in self.known.items() if point in plugin.points)

    def _usable(self, point: str, written: WrittenPluginSet, path: str) -> PluginSet:
        """What a file says about a point, without the plugins that cannot be there."""
        found: list[Problem] = []
        enabled: dict[str, EnabledPlugin] = {}
        for index, plugin in enumerate(written.enabled):
            wrong = self._misplaced(plugin.name, point)
            if wrong is None and plugin.name in enabled:
                wrong = f"plugin {shown(plugin.name)} is enabled twice"
            if wrong is None:
                enabled[plugin.name] = EnabledPlugin(plugin.name, plugin.weight)
            else:
                found.append(Problem(f"{path}.enabled[{index}].name", wrong))
        for index, plugin in enumerate(written.disabled):
            # To disable what is not there is harmless, as long as the name is right.
            wrong = unusable(plugin.name, self.known)
            if wrong is not None and plugin.name not in IN_TREE | REMOVED | {ALL}:
                found.append(Problem(f"{path}.disabled[{index}].name", wrong))
        self.problems.add_found(found)
        disabled = frozenset(plugin.name for plugin in written.disabled)
        return PluginSet(tuple(enabled.values()), disabled)

    def _misplaced(self, name: str, point: str) -> str | None:
        wrong = unusable(name, self.known)
        if wrong is None and point != MULTI_POINT and point not in self.known[name].points:
            return f"plugin {shown(name)} does not extend {point}"
        return wrong

    def _args(
        self, written: WrittenProfile, points: Points, path: str
    ) -> dict[str, msgspec.Struct | None]:
        """The args of the enabled plugins, those given and the default ones of the others."""
        given = read_args(written.plugin_config, path, self.known, self.problems)
        args: dict[str, msgspec.Struct | None] = {}
        for name in dict.fromkeys(plugin.name for each in points.values() for plugin in each):
            wanted = self.known[name].args
            if name in given or wanted is None:
                args[name] = given.get(name)
            else:
                args[name] = decode_args(wanted, {}, f"{path}[{name}].args", self.problems)
        return args


def compare(profiles: Sequence[ProfileConfiguration], path: str, problems: Problems) -> None:
    """Checks what profiles must share, their queue order, and what they may not, their names."""
    seen: set[str] = set()
    for index, profile in enumerate(profiles):
        at, name = item(path, index), profile.scheduler_name
        if name and name in seen:
            problems.add(child(at, "schedulerName"), f"{shown(name)} is used by another profile")
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


def _unworkable(points: Points, path: str) -> list[Problem]:
    sorts = [plugin.name for plugin in points["queueSort"]]
    found = []
    if len(sorts) != 1:
        message = f"exactly one plugin must be enabled, got {', '.join(sorts) or 'none'}"
        found.append(Problem(child(path, "queueSort"), message))
    if not points["bind"]:
        found.append(Problem(child(path, "bind"), "at least one plugin must be enabled"))
    return found
