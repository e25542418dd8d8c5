"""Extended resources for tests: one in plain Python, and one that raises when it is told to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moorage.cluster import (
    Admission,
    Cluster,
    ExtendedResource,
    Handle,
    HandleRegistry,
    ObjectPerNode,
)
from moorage.documents.errors import DecodeError
from moorage.objects.custom import CustomKind, CustomObject
from moorage.objects.decode import from_builtins
from moorage.objects.pod import Pod
from tests import builders

SLOTS = "example.com/slots"
KIND = CustomKind("example.com", "v1", "NodeSlots", "nodeslots")
#: A pod with this annotation makes its resource raise, half way, when it comes or goes.
FAILS = "fails"


@dataclass
class Slots(ExtendedResource):
    """So many slots per node; a pod uses as many as its annotation says."""

    capacity: int
    used: int = 0
    #: Not an integer, so that only the pods themselves can tell what is in use.
    names: frozenset[str] = frozenset()

    def add_pod(self, pod: Pod) -> None:
        self.used += 1000
        if "add" in pod.annotations.get(FAILS, ""):
            raise RuntimeError("cannot add")
        self.used += slots(pod) - 1000
        self.names |= {pod.name}

    def remove_pod(self, pod: Pod) -> None:
        self.used -= 1000
        if "remove" in pod.annotations.get(FAILS, ""):
            raise RuntimeError("cannot remove")
        self.used += 1000 - slots(pod)
        self.names -= {pod.name}

    def admit_pod(self, pod: Pod) -> Admission:
        return Admission(slots(pod), self.capacity - self.used)


class SlotsHandle(ObjectPerNode[Slots]):
    """Says nothing of which pods count, and keeps no columns."""

    kind = KIND

    def read(self, item: CustomObject) -> tuple[str, Slots]:
        spec = item.mapping("spec")
        if not spec.get("nodeName"):
            raise DecodeError("is required", "spec.nodeName")
        return spec["nodeName"], Slots(spec["slots"])


class ColumnsHandle(SlotsHandle):
    """The same, with everything said."""

    annotations = ("slots", FAILS)
    columns = ("capacity", "used")


def slots(pod: Pod) -> int:
    return int(pod.annotations.get("slots", 0))


def sharing(*handles: type[Handle[Any]]) -> HandleRegistry:
    """A registry with these handles, by the resource types SLOTS, SLOTS-1, …"""
    registry = HandleRegistry()
    for at, handle in enumerate(handles):
        registry.register(SLOTS if not at else f"{SLOTS}-{at}", handle)
    return registry


def cluster(*handles: type[Handle[Any]]) -> Cluster:
    """A cluster whose handles have started; it is checked when the test ends."""
    made = Cluster(sharing(*(handles or (SlotsHandle,))))
    made.extended.run()
    builders.made.append(made)
    return made


def status(name: str, count: Any, node: str | None = None) -> CustomObject:
    """What tells the slots of a node: of the same name, unless another is given."""
    spec = {"nodeName": name if node is None else node, "slots": count}
    return custom(KIND, name, spec=spec)


def custom(kind: CustomKind, name: str, **fields: Any) -> CustomObject:
    raw = {"metadata": {"name": name}, **fields}
    made = from_builtins(kind, raw)
    assert isinstance(made, CustomObject)
    return made


def using(name: str, count: int = 1, on: str = "", **given: Any) -> Pod:
    """A pod that uses slots."""
    fails = given.pop("fails", "")
    annotations = {"slots": str(count), **({FAILS: fails} if fails else {})}
    return builders.pod(name, node=on, metadata={"annotations": annotations}, **given)


def used(of: Cluster, node: str, resource_type: str = SLOTS) -> int | None:
    """What is in use on a node; None where there is no resource."""
    found = of.extended.get(resource_type, node)
    return None if found is None else found.figures()["used"]
