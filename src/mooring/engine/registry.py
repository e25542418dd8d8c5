"""Which plugins there are: the built-in ones, and those of other packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from mooring.framework.plugin import Plugin, Registry
from mooring.plugins import BUILTIN

#: Under this group, a package names its plugin classes as entry points.
GROUP = "mooring.plugins"


class RegistryError(Exception):
    """A plugin of another package that cannot be used; the text names package and entry point."""


def registry() -> Registry:
    """All plugins by name. Looks for installed packages, so that a plugin is there once it is."""
    plugins = {plugin.name: plugin for plugin in BUILTIN}
    # Which of two packages is found first is up to the file system.
    for entry in sorted(entry_points(group=GROUP), key=lambda each: (_package(each), each.name)):
        plugin = _load(entry)
        if plugins.setdefault(plugin.name, plugin) is not plugin:
            raise RegistryError(f"{_title(entry)}: there is a plugin {plugin.name!r} already")
    return plugins


def _load(entry: EntryPoint) -> type[Plugin]:
    try:
        plugin = entry.load()
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise RegistryError(f"{_title(entry)}: cannot be loaded: {told}") from error
    if not isinstance(plugin, type) or not issubclass(plugin, Plugin):
        raise RegistryError(f"{_title(entry)}: {entry.value} is not a Plugin class")
    if not isinstance(getattr(plugin, "name", None), str) or not plugin.name:
        raise RegistryError(f"{_title(entry)}: {entry.value} has no name")
    missing = ", ".join(sorted(plugin.__abstractmethods__))
    if missing:
        raise RegistryError(f"{_title(entry)}: {entry.value} does not define {missing}")
    return plugin


def _title(entry: EntryPoint) -> str:
    return f"package {_package(entry)}: entry point {entry.name} of {GROUP}"


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"
