"""How the plugins that a file names combine with the default ones, point by point."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

#: In `disabled`: every default plugin.
ALL = "*"


@dataclass(frozen=True, slots=True)
class EnabledPlugin:
    """A plugin at a point; the weight counts at score only and is 0 elsewhere."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PluginSet:
    """The plugins switched on and off at one point, or at all that they extend."""

    enabled: tuple[EnabledPlugin, ...] = ()
    disabled: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """The names of the enabled plugins."""
        return frozenset(plugin.name for plugin in self.enabled)


def merge(default: PluginSet, custom: PluginSet) -> PluginSet:
    """The default plugins as a file changes them: replaced in place, dropped, appended to."""
    instead = {plugin.name: plugin for plugin in custom.enabled}
    kept = tuple(
        instead.get(plugin.name, plugin)
        for plugin in default.enabled
        if not custom.disabled & {plugin.name, ALL}
    )
    names = {plugin.name for plugin in kept}
    added = tuple(plugin for plugin in custom.enabled if plugin.name not in names)
    return PluginSet(kept + added, default.disabled | custom.disabled)


def expand(
    point: str, here: PluginSet, multi_point: PluginSet, extending: Container[str]
) -> tuple[EnabledPlugin, ...]:
    """The plugins of a point in their final order.

    First those enabled here as well as in multiPoint, in the order given here; then those that
    only multiPoint enables, if they extend the point and are not disabled here; then the others.
    A default plugin that is not known extends nothing, and so is left out.
    """
    spread = tuple(
        plugin
        for plugin in multi_point.enabled
        if plugin.name in extending and not here.disabled & {plugin.name, ALL}
    )
    both = here.names & {plugin.name for plugin in spread}
    return tuple(
        _weighted(plugin, point)
        for plugin in (
            *(plugin for plugin in here.enabled if plugin.name in both),
            *(plugin for plugin in spread if plugin.name not in both),
            *(plugin for plugin in here.enabled if plugin.name not in both),
        )
    )


def _weighted(plugin: EnabledPlugin, point: str) -> EnabledPlugin:
    # A weight of 0 would be a plugin that runs for nothing; who wants that disables it.
    return replace(plugin, weight=(plugin.weight or 1) if point == "score" else 0)
