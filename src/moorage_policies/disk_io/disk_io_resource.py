"""The disk bandwidth of nodes as an extended resource, read from NodeDiskIOStatus objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from moorage.plugin import (
    Admission,
    CustomKind,
    CustomObject,
    DecodeError,
    ExtendedResource,
    ObjectPerNode,
    Pod,
    Wire,
    describe,
)
from moorage_policies.amounts import MOST_COUNTED, read_amount

GROUP = "diskio.moorage.dev"

#: The resource type, under which other plugins find it.
DISK_IO = f"{GROUP}/bandwidth"

KIND = CustomKind(
    GROUP, "v1alpha1", "NodeDiskIOStatus", "nodediskiostatuses", manifest="deploy/disk-io"
)

#: The annotations of pods: bytes per second, and the size of the blocks in which they are moved.
READ, WRITE, BLOCK_SIZE = f"{GROUP}/read", f"{GROUP}/write", f"{GROUP}/block-size"

#: The figures that are kept as columns, in this order.
READ_CAPACITY, READ_USED = "read_capacity", "read_used"
WRITE_CAPACITY, WRITE_USED = "write_capacity", "write_used"


class BlockSize(Wire, frozen=True):
    """What moving data in blocks of up to a size costs, in percent of what large blocks cost."""

    up_to_bytes: int
    percent: int


#: Rough figures for solid state disks; the configuration has those of the disks at hand.
BLOCK_SIZES = (
    BlockSize(up_to_bytes=4 * 2**10, percent=400),
    BlockSize(up_to_bytes=64 * 2**10, percent=150),
)


class Bandwidth(NamedTuple):
    """Bytes per second."""

    read: int
    write: int

    @property
    def is_none(self) -> bool:
        return not self.read and not self.write


@dataclass(slots=True)
class DiskIOResource(ExtendedResource):
    """What the disks of one node can do, and what its pods are estimated to use."""

    block_sizes: tuple[BlockSize, ...]
    read_capacity: int
    write_capacity: int
    read_used: int = 0
    write_used: int = 0

    def add_pod(self, pod: Pod) -> None:
        use = estimate(pod, self.block_sizes)
        self.read_used += use.read
        self.write_used += use.write

    def remove_pod(self, pod: Pod) -> None:
        use = estimate(pod, self.block_sizes)
        self.read_used -= use.read
        self.write_used -= use.write

    def admit_pod(self, pod: Pod) -> Admission:
        """Returns the admission in the direction in which less is left over."""
        use = estimate(pod, self.block_sizes)
        both = (
            Admission(use.read, self.read_capacity - self.read_used),
            Admission(use.write, self.write_capacity - self.write_used),
        )
        asked = [each for each in both if each.request]
        return min(asked or both, key=lambda each: each.available - each.request)

    def copy(self) -> DiskIOResource:
        return replace(self)

    def figures(self) -> Mapping[str, int]:
        return {
            READ_CAPACITY: self.read_capacity,
            READ_USED: self.read_used,
            WRITE_CAPACITY: self.write_capacity,
            WRITE_USED: self.write_used,
        }


class DiskIOHandle(ObjectPerNode[DiskIOResource]):
    """Follows the NodeDiskIOStatus objects."""

    kind = KIND
    annotations = (READ, WRITE, BLOCK_SIZE)
    columns = (READ_CAPACITY, READ_USED, WRITE_CAPACITY, WRITE_USED)

    def __init__(self, block_sizes: tuple[BlockSize, ...] = BLOCK_SIZES) -> None:
        super().__init__()
        self.block_sizes = block_sizes

    def read(self, item: CustomObject) -> tuple[str, DiskIOResource]:
        name = node_name(item)
        has = capacity(item)
        return name, DiskIOResource(self.block_sizes, has.read, has.write)


# Pods


def asks(pod: Pod) -> bool:
    """Whether a pod says anything about disks."""
    held = pod.annotations
    return READ in held or WRITE in held or BLOCK_SIZE in held


def estimate(pod: Pod, block_sizes: tuple[BlockSize, ...]) -> Bandwidth:
    """Returns what a pod is estimated to use; raises DecodeError naming an annotation."""
    held = pod.annotations
    return _estimate(held.get(READ), held.get(WRITE), held.get(BLOCK_SIZE), block_sizes)


@lru_cache(maxsize=4096)
def _estimate(
    read: str | None, write: str | None, block: str | None, block_sizes: tuple[BlockSize, ...]
) -> Bandwidth:
    percent = 100
    if block is not None:
        size = read_amount(f"annotation {BLOCK_SIZE}", block)
        fitting = (each.percent for each in block_sizes if size <= each.up_to_bytes)
        percent = next(fitting, percent)
    asked = (
        0 if text is None else read_amount(f"annotation {name}", text)
        for name, text in ((READ, read), (WRITE, write))
    )
    return Bandwidth(*(min(-(-amount * percent // 100), MOST_COUNTED) for amount in asked))


# Objects


def node_name(item: CustomObject) -> str:
    name = item.mapping("spec").get("nodeName")
    if not isinstance(name, str) or not name:
        wrong = "is required" if name in (None, "") else f"must be a string, got {describe(name)}"
        raise DecodeError(wrong, "spec.nodeName")
    return name


def capacity(item: CustomObject) -> Bandwidth:
    """Returns what a node can do: as it was measured, if it was, else as it is specified."""
    return Bandwidth(*(_direction(item, name) for name in ("read", "write")))


def _direction(item: CustomObject, name: str) -> int:
    for path in (("status", "allocatable"), ("spec", "capacity")):
        found = item.mapping(*path).get(name)
        if found is not None:
            return read_amount(".".join((*path, name)), found)
    raise DecodeError("is required", f"spec.capacity.{name}")
