"""Counts the devices of a class on nodes, and those of them in use. Scores read the counts.

Devices count as in kube-scheduler: in all slices, even of old generations and incomplete pools. A
node counts none if an expression fails for one of its slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, Rows, View
from moorage.cluster.derived import Recent
from moorage.cluster.devices.device_log import DeviceLog
from moorage.cluster.devices.models import DeviceContent, DeviceModel, Models
from moorage.cluster.devices.pools import PoolKey
from moorage.framework.status import PluginError
from moorage.objects.device import (
    DeviceClass,
    NodeChoice,
    ResourceSlice,
    SliceDevice,
    choose_nodes,
)

from .selectors import AnswersSpentError, SelectorAnswers, SelectorProblem

# The most classes that are counted. Each takes some columns.
_MOST_CLASSES = 64

#: The cost of looking at a known device again, and of reading a new one, in steps of an evaluation.
_STEPS_PER_LOOK, _STEPS_PER_CONTENT = 2, 10

#: The most steps that one decision may spend on counting, about 0.3 s.
MOST_STEPS_OF_COUNTS = 450_000

_Counts = NDArray[np.int64]

#: The models of the devices of a slice; None if they are not known.
KnownModels = Sequence[DeviceModel] | None

#: Returns the devices of a slice that a class selects; None if an expression fails.
Matching = Callable[[DeviceClass, ResourceSlice, KnownModels], tuple[SliceDevice, ...] | None]

#: Some rows, the devices that a slice adds to each of them, and how many of these are in use. -1
#: devices mean that the slice cannot be counted.
_Share = tuple[Mask | int, int, int]


class DeviceCounts:
    """Counts devices of classes per row."""

    def __init__(self, most_steps: int = MOST_STEPS_OF_COUNTS) -> None:
        self._answers = SelectorAnswers()
        self._most_steps = most_steps
        self._models = Models()
        self._columns: Recent[int, ClassColumns] = Recent(_MOST_CLASSES)

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Limits counting to what one decision may spend on it. What was counted is kept."""
        self._answers.limit(self._most_steps)
        try:
            yield
        except AnswersSpentError:
            text = f"gave up counting devices after {self._most_steps} steps"
            raise PluginError(f"{text}, the next attempt goes on from there") from None
        finally:
            self._answers.limit(None)

    def count(self, wanted: DeviceClass, nodes: View, rows: Rows) -> tuple[_Counts, _Counts]:
        """Returns how many devices each row has, and how many of them are in use."""
        columns = self._columns.find(id(wanted))
        if columns is None:
            # The columns hold the class, so that no other class gets its id.
            columns = ClassColumns(wanted, self.find_matching)
            self._columns.put(id(wanted), columns)
        columns.catch_up(nodes)
        whole = columns.broken[rows] == 0
        return columns.there[rows] * whole, columns.used[rows] * whole

    def find_matching(
        self, wanted: DeviceClass, item: ResourceSlice, models: KnownModels
    ) -> tuple[SliceDevice, ...] | None:
        """Returns the devices of a slice that a class selects; None if an expression fails."""
        expressions = [each.cel.expression if each.cel else "" for each in wanted.selectors]
        found = []
        try:
            for device, model in zip(item.devices, models or repeat(None), strict=False):
                content = self._find_content(item.driver, device, model)
                if all(self._answers.matches(each, content) for each in expressions):
                    found.append(device)
        except SelectorProblem:
            return None
        return tuple(found)

    def _find_content(
        self, driver: str, device: SliceDevice, model: DeviceModel | None
    ) -> DeviceContent:
        """Returns the content of a device as if it could not be shared."""
        if model is not None and not model.is_shared:
            self._answers.spend(_STEPS_PER_LOOK)
            return model.content
        self._answers.spend(_STEPS_PER_CONTENT)
        alone = msgspec.structs.replace(device, allow_multiple_allocations=None)
        return self._models.content(driver, alone)


class ClassColumns:
    """The counts for one class, kept up to date slice by slice."""

    def __init__(self, wanted: DeviceClass, matching: Matching) -> None:
        self._wanted = wanted
        self._matching = matching
        self._log: DeviceLog | None = None
        self._position = 0
        self._rows_version = -1
        #: By name, each slice with its devices of the class, and the shares that were counted.
        self._slices: dict[str, tuple[ResourceSlice, tuple[SliceDevice, ...] | None]] = {}
        self._shares: dict[str, list[_Share]] = {}
        #: The names of the slices that must be counted again.
        self._due: dict[str, None] = {}
        self.there: _Counts = np.zeros(0, np.int64)
        self.used: _Counts = np.zeros(0, np.int64)
        #: How many slices per row cannot be counted.
        self.broken: _Counts = np.zeros(0, np.int64)

    def catch_up(self, nodes: View) -> None:
        """Counts the slices that changed. If that ends early, the next call counts the rest."""
        log, size = nodes.devices.log, nodes.count(nodes.everything)
        # The known devices may have been replaced, with a new log.
        changed = log.since(self._position) if log is self._log else None
        if changed is None or self._rows_version != log.rows_version or len(self.there) != size:
            self._rows_version = log.rows_version
            self.there, self.used, self.broken = np.zeros((3, size), np.int64)
            self._shares.clear()
            self._due = dict.fromkeys(nodes.devices.slices)
        else:
            self._due.update(_names(changed, nodes))
        self._log, self._position = log, log.position
        for name in [*self._due]:
            self._count(name, nodes)
            del self._due[name]

    def _count(self, name: str, nodes: View) -> None:
        """Counts a slice again, and removes its old counts."""
        for share in self._shares.pop(name, ()):
            self._add(share, -1)
        item = nodes.devices.slices.get(name)
        if item is None:
            self._slices.pop(name, None)
            return
        known = self._slices.get(name)
        if known is None or known[0] is not item:
            pool = nodes.devices.pools.get((item.driver, item.pool))
            models = None if pool is None else pool.known_models(name)
            known = self._slices[name] = item, self._matching(self._wanted, item, models)
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


def _names(changed: Iterable[str | PoolKey], nodes: View) -> dict[str, None]:
    """Returns the slices that changed, and the slices of pools whose use changed."""
    found: dict[str, None] = {}
    for each in changed:
        if isinstance(each, str):
            found[each] = None
        else:
            pool = nodes.devices.pools.get(each)
            found.update(dict.fromkeys(pool.slices if pool is not None else ()))
    return found


def _shares(
    item: ResourceSlice, matching: tuple[SliceDevice, ...] | None, nodes: View
) -> Iterator[_Share]:
    if matching is None:
        yield _where(item.nodes, nodes), -1, 0
        return
    held = nodes.devices.use.held((item.driver, item.pool))
    for choice, devices in _by_choice(item, matching):
        used = sum(device.name in held for device in devices) if held else 0
        yield _where(choice, nodes), len(devices), used


def _where(choice: NodeChoice, nodes: View) -> Mask | int:
    """Returns the chosen rows. A single row is a number, because that is cheaper."""
    if isinstance(choice, str):
        row = nodes.row(choice)
        if row is not None:
            return row
    # A slice that names no nodes counts everywhere.
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
