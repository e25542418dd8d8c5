"""All plugins that are installed: the built-in ones and the policies."""

from __future__ import annotations

from moorage.framework.plugin import Plugin
from moorage.testing.installed import find_plugins

REGISTRY = find_plugins()
PLUGINS: tuple[type[Plugin], ...] = tuple(REGISTRY.values())
