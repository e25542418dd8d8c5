"""KubeSchedulerConfiguration as files write it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.objects.meta import Wire

from .configuration import Int32, Settings, percentage_problems

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"


class WrittenPlugin(Wire, frozen=True):
    """A plugin by name; the weight counts at score only."""

    name: str = ""
    weight: Int32 = 0


class WrittenPluginSet(Wire, frozen=True):
    """Plugins switched on and off at a point."""

    enabled: tuple[WrittenPlugin, ...] = ()
    disabled: tuple[WrittenPlugin, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.enabled or self.disabled)


class WrittenPlugins(Wire, frozen=True):
    """The plugins of a profile, point by point."""

    pre_enqueue: WrittenPluginSet = WrittenPluginSet()
    queue_sort: WrittenPluginSet = WrittenPluginSet()
    pre_filter: WrittenPluginSet = WrittenPluginSet()
    filter: WrittenPluginSet = WrittenPluginSet()
    post_filter: WrittenPluginSet = WrittenPluginSet()
    pre_score: WrittenPluginSet = WrittenPluginSet()
    score: WrittenPluginSet = WrittenPluginSet()
    reserve: WrittenPluginSet = WrittenPluginSet()
    permit: WrittenPluginSet = WrittenPluginSet()
    pre_bind: WrittenPluginSet = WrittenPluginSet()
    bind: WrittenPluginSet = WrittenPluginSet()
    post_bind: WrittenPluginSet = WrittenPluginSet()
    multi_point: WrittenPluginSet = WrittenPluginSet()
    placement_generate: WrittenPluginSet = WrittenPluginSet()
    placement_score: WrittenPluginSet = WrittenPluginSet()

    def by_point(self) -> dict[str, WrittenPluginSet]:
        """The sets by the name that the file uses."""
        fields = msgspec.structs.fields(self)
        return {field.encode_name: getattr(self, field.name) for field in fields}

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.placement_generate:
            yield "placementGenerate", "not supported by Mooring yet"
        if self.placement_score:
            yield "placementScore", "not supported by Mooring yet"


class WrittenPluginConfig(Wire, frozen=True):
    """The args of a plugin, to be read once it is known what type they have."""

    name: str = ""
    args: dict[str, Any] | None = None


class WrittenProfile(Wire, frozen=True):
    """A profile, before it is merged with the default one."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: WrittenPlugins = WrittenPlugins()
    plugin_config: tuple[WrittenPluginConfig, ...] = ()

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.scheduler_name:
            yield "schedulerName", "is required"
        yield from percentage_problems(self.percentage_of_nodes_to_score)
        yield from ((f"plugins.{where}", message) for where, message in self.plugins.problems())


class WrittenConfiguration(Settings, frozen=True):
    """A whole file."""

    api_version: str = API_VERSION
    kind: str = KIND
    profiles: tuple[WrittenProfile, ...] = ()
    extenders: tuple[Any, ...] = ()

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from super().problems()
        if self.extenders:
            yield "extenders", "not supported by Mooring yet"
