"""Device classes, and the extended resources that stand for them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from moorage.objects.device import DeviceClass

#: This prefix and the name of a class are a resource by which pods can request the class.
IMPLICIT = "deviceclass.resource.kubernetes.io/"


class DeviceClasses:
    """Classes by name, and by the resource that containers request."""

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self._by_resource: dict[str, str] = {}
        #: Changes whenever a class does.
        self.version = 0

    def get(self, name: str) -> DeviceClass | None:
        return self._classes.get(name)

    def for_resource(self, resource: str) -> DeviceClass | None:
        """Returns the class that a resource stands for; None if it stands for none."""
        name = self._by_resource.get(resource)
        return None if name is None else self._classes.get(name)

    @property
    def map_resources(self) -> bool:
        """Returns whether any resource stands for a class."""
        return bool(self._by_resource)

    @property
    def resources(self) -> Collection[str]:
        """Returns the resources that stand for classes."""
        return self._by_resource.keys()

    def __iter__(self) -> Iterator[DeviceClass]:
        return iter(self._classes.values())

    def put(self, item: DeviceClass) -> DeviceClass | None:
        """Adds or updates a class; returns its previous form."""
        before = self._classes.get(item.name)
        if before == item:
            return before
        self.version += 1
        self._classes[item.name] = item
        explicit = item.extended_resource_name
        if before is not None and before.extended_resource_name != explicit:
            self._unmap(before.extended_resource_name, item.name)
        if explicit and not self._wins(item):
            # As in kube-scheduler: a class that loses its resource to another class is not mapped
            # from its implicit resource either.
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
        """Returns whether a class gets its resource: of several classes the newest gets it."""
        rival = self.for_resource(item.extended_resource_name)
        if rival is None or rival.name == item.name:
            return True
        ours, theirs = item.created or 0.0, rival.created or 0.0
        return item.name < rival.name if ours == theirs else ours > theirs
