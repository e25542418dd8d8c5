"""Device classes, and the extended resources that stand for them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mooring.objects.device import DeviceClass

#: Every class can be asked for by this prefix and its name.
IMPLICIT = "deviceclass.resource.kubernetes.io/"


class DeviceClasses:
    """Classes by name, and by the resource that containers ask for."""

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self._by_resource: dict[str, str] = {}
        #: Changes whenever a class does.
        self.version = 0

    def get(self, name: str) -> DeviceClass | None:
        return self._classes.get(name)

    def for_resource(self, resource: str) -> DeviceClass | None:
        """The class that a resource stands for, if it does."""
        name = self._by_resource.get(resource)
        return None if name is None else self._classes.get(name)

    @property
    def map_resources(self) -> bool:
        """Whether any resource stands for a class."""
        return bool(self._by_resource)

    @property
    def resources(self) -> Collection[str]:
        """The resources that stand for classes."""
        return self._by_resource.keys()

    def __iter__(self) -> Iterator[DeviceClass]:
        return iter(self._classes.values())

    def put(self, item: DeviceClass) -> DeviceClass | None:
        """Adds or updates a class; returns what it was before."""
        before = self._classes.get(item.name)
        if before == item:
            return before
        self.version += 1
        self._classes[item.name] = item
        explicit = item.extended_resource_name
        if before is not None and before.extended_resource_name != explicit:
            self._unmap(before.extended_resource_name, item.name)
        if explicit and not self._wins(item):
            # As in kube-scheduler: a class that comes too late for its name gets no name at all.
            return before
        if explicit:
            self._by_resource[explicit] = item.name
        self._by_resource[IMPLICIT + item.name] = item.name
        return before

    def drop(self, name: str) -> None:
        gone = self._classes.pop(name, None)
        if gone is not None:
            self.version += 1
            self._unmap(gone.extended_resource_name, name)
            self._unmap(IMPLICIT + name, name)

    def _unmap(self, resource: str, name: str) -> None:
        if self._by_resource.get(resource) == name:
            del self._by_resource[resource]

    def _wins(self, item: DeviceClass) -> bool:
        """Whether it has its resource, should another class want that too: the newest has it."""
        rival = self.for_resource(item.extended_resource_name)
        if rival is None or rival.name == item.name:
            return True
        ours, theirs = item.created or 0.0, rival.created or 0.0
        return item.name < rival.name if ours == theirs else ours > theirs
