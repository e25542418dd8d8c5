"""The plugins that are installed, which tests search once."""

from __future__ import annotations

from functools import cache

from moorage.engine.registry import registry
from moorage.framework.plugin import Registry


@cache
def find_plugins() -> Registry:
    """Returns the built-in plugins and those of installed packages, by name."""
    return registry()
