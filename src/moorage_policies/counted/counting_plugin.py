"""The common part of plugins that count by configuration: handles, signatures and wake-ups."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Any, Self

from moorage.plugin import (
    Action,
    Change,
    ConfigError,
    DecodeError,
    HandleRegistry,
    Pod,
    Problem,
    Resource,
    Sign,
    View,
    Wakeup,
    on,
)

from .counted_amount import CountedHandle, make_node_handle, make_pool_handle
from .counted_args import CountedPool, CountedResource

_NONE = Change.NONE


class CountingPlugin(Sign):
    """Compares what pods ask for with what is left of things that a configuration counts."""

    def __init__(
        self,
        settings: Iterable[CountedResource | CountedPool],
        handles: HandleRegistry | None,
    ) -> None:
        handles = handles or HandleRegistry()
        self._handles = {each.name: _register(self.name, each, handles) for each in settings}

    @classmethod
    def create_sharing(cls, args: Any, gates: Mapping[str, bool], handles: HandleRegistry) -> Self:
        return cls(args, handles)

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        """Returns what a pod asks for of each resource, or what is wrong with how it asks."""
        try:
            return tuple(handle.use.amount(pod) for handle in self._handles.values())
        except DecodeError as error:
            return str(error)

    def watch(self, pod: Pod, nodes: View) -> Change:
        """Returns the changes of the resources that a pod asks for."""
        change, handles = nodes.extended.change, self._handles.items()
        return reduce(or_, (change(name) for name, each in handles if each.use.is_said(pod)), _NONE)

    def wakeups(self) -> tuple[Wakeup, ...]:
        """Returns events: a changed capacity, and pods that leave or use less of it."""
        handles = self._handles.values()
        kinds = dict.fromkeys(kind.resource for handle in handles for kind in handle.kinds)
        return (
            *(on(resource, Action.ALL) for resource in kinds),
            on(Resource.POD, Action.DELETE, self._after_pod_is_gone, alike=True),
            on(Resource.POD, Action.UPDATE, self._after_pod_change, alike=True),
        )

    def _after_pod_is_gone(self, pod: Pod, old: Pod, new: None) -> bool:
        return old.has_place and any(handle.counts(old) for handle in self._handles.values())

    def _after_pod_change(self, pod: Pod, old: Pod, new: Pod) -> bool:
        alike = all(handle.counts_alike(old, new) for handle in self._handles.values())
        return not alike and (new.uid == pod.uid or new.has_place)


def _register(
    plugin: str, settings: CountedResource | CountedPool, handles: HandleRegistry
) -> CountedHandle:
    """Returns the handle of a resource, which profiles share; they must count it alike."""

    def make() -> CountedHandle:
        if isinstance(settings, CountedPool):
            return make_pool_handle(settings)
        return make_node_handle(settings)

    handle = handles.register(settings.name, make)
    if not isinstance(handle, CountedHandle) or _counted_as(handle.settings) != _counted_as(
        settings
    ):
        problem = f"{settings.name} is counted otherwise by another profile or plugin"
        raise ConfigError((Problem(f"pluginConfig[{plugin}].args", problem),))
    return handle


def _counted_as(settings: CountedResource | CountedPool) -> tuple[Hashable, ...]:
    kind = type(settings).__name__
    return kind, settings.capacity, settings.pod_annotation, settings.pod_resource
