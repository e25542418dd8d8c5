"""How many devices of a class nodes have, and how many of them are in use: for scoring.

As kube-scheduler counts them: in all slices, whatever their generation and whether their pool is
complete. Where an expression breaks, nothing is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Mask, Nodes, Rows
from mooring.cluster.derived import Recent
from mooring.cluster.devices.device_log import DeviceLog
from mooring.cluster.devices.models import Models
from mooring.cluster.devices.pools import PoolKey
from mooring.objects.device import (
    DeviceClass,
    NodeChoice,
    ResourceSlice,
    SliceDevice,
    choose_nodes,
)

from .selectors import SelectorAnswers, SelectorProblem

# Classes that are counted; each takes some columns.
_MOST_CLASSES = 64

_Counts = NDArray[np.int64]

#: The devices of a slice that a class selects; None where that cannot be told.
Matching = Callable[[DeviceClass, ResourceSlice], tuple[SliceDevice, ...] | None]

#: Some rows, and how many devices they have more, in use and not.
_Share = tuple[Mask | int, int, int]


class DeviceCounts:
    """Counts devices of classes per row."""

    def __init__(self) -> None:
        self._answers = SelectorAnswers()
        self._models = Models()
        self._columns: Recent[int, ClassColumns] = Recent(_MOST_CLASSES)

    def count(self, wanted: DeviceClass, nodes: Nodes, rows: Rows) -> tuple[_Counts, _Counts]:
        """How many devices there are per row, and how many are in use."""
        columns = self._columns.find(id(wanted))
        if columns is None:
            # Kept with the class, so that its identity stays its own.
            columns = ClassColumns(wanted, self.find_matching)
            self._columns.put(id(wanted), columns)
        columns.catch_up(nodes)
        whole = columns.broken[rows] == 0
        return columns.there[rows] * whole, columns.used[rows] * whole

    def find_matching(
        self, wanted: DeviceClass, item: ResourceSlice
    ) -> tuple[SliceDevice, ...] | None:
        """The devices of a slice that a class selects; None where that cannot be told."""
        try:
            return tuple(each for each in item.devices if self._matches(wanted, item.driver, each))
        except SelectorProblem:
            return None

    def _matches(self, wanted: DeviceClass, driver: str, device: SliceDevice) -> bool:
        alone = msgspec.structs.replace(device, allow_multiple_allocations=None)
        content = self._models.content(driver, alone)
        return all(
            self._answers.matches(each.cel.expression if each.cel else "", content)
            for each in wanted.selectors
        )


class ClassColumns:
    """The counts for one class, kept up to date slice by slice."""

    def __init__(self, wanted: DeviceClass, matching: Matching) -> None:
        self._wanted = wanted
        self._matching = matching
        self._log: DeviceLog | None = None
        self._position = 0
        self._rows_version = -1
        #: What slices have, by name: the slice, its devices of the class, and what that amounts to.
        self._slices: dict[str, tuple[ResourceSlice, tuple[SliceDevice, ...] | None]] = {}
        self._shares: dict[str, list[_Share]] = {}
        self.there: _Counts = np.zeros(0, np.int64)
        self.used: _Counts = np.zeros(0, np.int64)
        #: How many slices per row cannot be counted.
        self.broken: _Counts = np.zeros(0, np.int64)

    def catch_up(self, nodes: Nodes) -> None:
        """Looks again at whatever changed."""
        log, size = nodes.devices.log, nodes.count(nodes.everything)
        # All that is known may have been counted anew, with a log of its own.
        changed = log.since(self._position) if log is self._log else None
        if changed is None or self._rows_version != log.rows_version or len(self.there) != size:
            self._rows_version = log.rows_version
            self.there, self.used, self.broken = np.zeros((3, size), np.int64)
            self._shares.clear()
            names: Iterable[str] = [*nodes.devices.slices]
        else:
            names = _names(changed, nodes)
        self._log, self._position = log, log.position
        for name in names:
            self._count(name, nodes)

    def _count(self, name: str, nodes: Nodes) -> None:
        """Counts a slice anew, in place of what it was counted as before."""
        for share in self._shares.pop(name, ()):
            self._add(share, -1)
        item = nodes.devices.slices.get(name)
        if item is None:
            self._slices.pop(name, None)
            return
        known = self._slices.get(name)
        if known is None or known[0] is not item:
            known = self._slices[name] = item, self._matching(self._wanted, item)
        self._shares[name] = shares = list(_shares(item, known[1], nodes))
        for share in shares:
            self._add(share, 1)

    def _add(self, share: _Share, sign: int) -> None:
        where, there, used = share
        if there < 0:
            self.broken[where] += sign
            return
        self.there[where] += sign * there
        self.used[where] += sign * used


def _names(changed: Iterable[str | PoolKey], nodes: Nodes) -> dict[str, None]:
    """The slices that changed, and those of pools of which the use changed."""
    found: dict[str, None] = {}
    for each in changed:
        if isinstance(each, str):
            found[each] = None
        else:
            pool = nodes.devices.pools.get(each)
            found.update(dict.fromkeys(pool.slices if pool is not None else ()))
    return found


def _shares(
    item: ResourceSlice, matching: tuple[SliceDevice, ...] | None, nodes: Nodes
) -> Iterator[_Share]:
    if matching is None:
        yield _where(item.nodes, nodes), -1, 0
        return
    held = nodes.devices.use.held((item.driver, item.pool))
    for choice, devices in _by_choice(item, matching):
        used = sum(device.name in held for device in devices) if held else 0
        yield _where(choice, nodes), len(devices), used


def _where(choice: NodeChoice, nodes: Nodes) -> Mask | int:
    """The rows that are meant; one alone is cheaper by its number."""
    if isinstance(choice, str):
        row = nodes.row(choice)
        if row is not None:
            return row
    # A slice that says nothing of nodes counts everywhere.
    return nodes.choose(True if choice is None else choice)


def _by_choice(
    item: ResourceSlice, devices: tuple[SliceDevice, ...]
) -> Iterator[tuple[NodeChoice, tuple[SliceDevice, ...]]]:
    if not item.is_per_device:
        yield item.nodes, devices
        return
    for device in devices:
        choice = choose_nodes(device.node_name, device.all_nodes, device.node_selector)
        yield choice if choice is not None else False, (device,)
