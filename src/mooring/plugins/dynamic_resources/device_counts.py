"""How many devices of a class nodes have, and how many of them are in use: for scoring.

As kube-scheduler counts them: in all slices, whatever their generation and whether their pool is
complete. Where an expression breaks, nothing is counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Mask, Nodes, Rows
from mooring.cluster.derived import Recent
from mooring.cluster.devices.models import Models
from mooring.objects.device import (
    DeviceClass,
    NodeChoice,
    ResourceSlice,
    SliceDevice,
    choose_nodes,
)

from .selectors import SelectorAnswers, SelectorProblem

# Slices times classes that are counted.
_MOST_SLICES = 65_536

_Counts = NDArray[np.int64]


class DeviceCounts:
    """Counts devices of classes per row."""

    def __init__(self) -> None:
        self._answers = SelectorAnswers()
        self._models = Models()
        #: By slice and class the devices that match; None where that cannot be told.
        self._matching: Recent[
            tuple[int, int], tuple[ResourceSlice, DeviceClass, tuple[SliceDevice, ...] | None]
        ] = Recent(_MOST_SLICES)

    def count(self, wanted: DeviceClass, nodes: Nodes, rows: Rows) -> tuple[_Counts, _Counts]:
        """How many devices there are per row, and how many are in use."""
        size = nodes.count(nodes.everything)
        there, used = np.zeros(size, np.int64), np.zeros(size, np.int64)
        broken = np.zeros(size, np.bool_)
        for item in nodes.devices.slices.values():
            matching = self._find(wanted, item)
            if matching is None:
                broken |= self._where(item.nodes, nodes)
                continue
            held = nodes.devices.use.held((item.driver, item.pool))
            for choice, devices in _by_choice(item, matching):
                where = self._where(choice, nodes)
                there[where] += len(devices)
                used[where] += sum(device.name in held for device in devices)
        there[broken] = used[broken] = 0
        return there[rows], used[rows]

    def _where(self, choice: NodeChoice, nodes: Nodes) -> Mask:
        # A slice that says nothing of nodes counts everywhere.
        return nodes.choose(True if choice is None else choice)

    def _find(self, wanted: DeviceClass, item: ResourceSlice) -> tuple[SliceDevice, ...] | None:
        key = id(item), id(wanted)
        known = self._matching.find(key)
        if known is None:
            # Kept with both, so that their identities stay theirs.
            known = item, wanted, self._match(wanted, item)
            self._matching.put(key, known)
        return known[2]

    def _match(self, wanted: DeviceClass, item: ResourceSlice) -> tuple[SliceDevice, ...] | None:
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


def _by_choice(
    item: ResourceSlice, devices: tuple[SliceDevice, ...]
) -> Iterator[tuple[NodeChoice, tuple[SliceDevice, ...]]]:
    if not item.is_per_device:
        yield item.nodes, devices
        return
    for device in devices:
        choice = choose_nodes(device.node_name, device.all_nodes, device.node_selector)
        yield choice if choice is not None else False, (device,)
