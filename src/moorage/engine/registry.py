"""Finds all plugins: built-in ones, those of other packages, and those of files."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

from moorage.documents.errors import InputError
from moorage.framework.plugin import Plugin, Registry
from moorage.plugins import BUILTIN

#: Under this group, a package names its plugin classes as entry points.
GROUP = "moorage.plugins"


class RegistryError(InputError):
    """A plugin that cannot be used. The text names where it comes from."""


def registry(more: Iterable[type[Plugin]] = ()) -> Registry:
    """Returns all plugins by name. It searches installed packages on every call."""
    plugins = {plugin.name: plugin for plugin in BUILTIN}
    # Which of two packages is found first is up to the file system.
    for entry in sorted(entry_points(group=GROUP), key=lambda each: (_package(each), each.name)):
        _add(plugins, _load(entry), _title(entry))
    for plugin in more:
        _add(plugins, plugin, f"{plugin.__module__}: {plugin.__qualname__}")
    return plugins


def check(plugin: object, title: str, source: str) -> type[Plugin]:
    """Returns a plugin class that can be built; raises RegistryError for any other."""
    if not isinstance(plugin, type) or not issubclass(plugin, Plugin):
        raise RegistryError(f"{title}: {source} is not a Plugin class")
    if not isinstance(getattr(plugin, "name", None), str) or not plugin.name:
        raise RegistryError(f"{title}: {source} has no name")
    missing = ", ".join(sorted(plugin.__abstractmethods__))
    if missing:
        raise RegistryError(f"{title}: {source} does not define {missing}")
    return plugin


def _add(plugins: dict[str, type[Plugin]], plugin: type[Plugin], title: str) -> None:
    if plugins.setdefault(plugin.name, plugin) is not plugin:
        raise RegistryError(f"{title}: there is a plugin {plugin.name!r} already")


def _load(entry: EntryPoint) -> type[Plugin]:
    try:
        plugin = entry.load()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise RegistryError(f"{_title(entry)}: cannot be loaded: {why}") from error
    return check(plugin, _title(entry), entry.value)


def _title(entry: EntryPoint) -> str:
    return f"package {_package(entry)}: entry point {entry.name} of {GROUP}"


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"
