"""A handle for the usual case: a custom resource with one object per node."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from mooring.objects.custom import CustomObject

from .extended import ExtendedCache, ExtendedResource, Handle
from .informers import Informer


class ObjectPerNode(Handle):
    """Sets what each object says of its node. Authors say how an object is read.

    Objects may come before or after their node and its pods, move to another node, and go. An
    object that cannot be read changes nothing: what the one before it said stays.
    """

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._said: dict[str, dict[str, ExtendedResource]] = {}

    @abstractmethod
    def read(self, item: CustomObject) -> tuple[str, ExtendedResource]:
        """The name of the node, and what it has; raises DecodeError naming the field."""

    def run(self, cache: ExtendedCache, informer: Informer) -> None:
        super().run(cache, informer)
        informer.listen(self._applied, self._removed)

    def _applied(self, item: CustomObject) -> None:
        node_name, resource = self.read(item)
        said = {**self._said.get(node_name, {}), item.key: resource}
        # Before anything is noted, since what was read may still be refused.
        self._settle(node_name, said)
        if self._node_of.get(item.key, node_name) != node_name:
            self._removed(item)
        self._node_of[item.key] = node_name
        self._said[node_name] = said
        if len(said) > 1:
            told = f"more than one {item.kind} describes node {node_name}"
            raise ValueError(f"{told}: {min(said)} counts")

    def _removed(self, item: CustomObject) -> None:
        node_name = self._node_of.pop(item.key, None)
        if node_name is not None:
            said = self._said.pop(node_name)
            del said[item.key]
            if said:
                self._said[node_name] = said
            self._settle(node_name, said)

    def _settle(self, node_name: str, said: Mapping[str, ExtendedResource]) -> None:
        """Sets what holds for a node: of several objects the first by name, in whatever order."""
        if said:
            self.cache.set(node_name, said[min(said)])
        else:
            self.cache.remove(node_name)
