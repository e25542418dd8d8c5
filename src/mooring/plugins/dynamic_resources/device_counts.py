"""How many devices of a class nodes have, and how many of them are in use: for scoring.

As kube-scheduler counts them: in all slices, whatever their generation and whether their pool is
complete. Where an expression breaks, nothing is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Mask, Nodes, Rows
from mooring.cluster.derived import Recent
from mooring.cluster.devices.device_log import DeviceLog
from mooring.cluster.devices.models import DeviceContent, DeviceModel, Models
from mooring.cluster.devices.pools import PoolKey
from mooring.framework.status import PluginError
from mooring.objects.device import (
    DeviceClass,
    NodeChoice,
    ResourceSlice,
    SliceDevice,
    choose_nodes,
)

from .selectors import AnswersSpentError, SelectorAnswers, SelectorProblem

# Classes that are counted; each takes some columns.
_MOST_CLASSES = 64

#: What it takes to look at a device again, and to see what one is like that nobody has looked at,
#: in steps of an evaluation.
_STEPS_PER_LOOK, _STEPS_PER_CONTENT = 2, 10

#: So many steps may be spent on counting in one decision, about 0.3 s.
MOST_STEPS_OF_COUNTS = 450_000

_Counts = NDArray[np.int64]

#: What the devices of a slice are like, as far as that is known.
KnownModels = Sequence[DeviceModel] | None

#: The devices of a slice that a class selects; None where that cannot be told.
Matching = Callable[[DeviceClass, ResourceSlice, KnownModels], tuple[SliceDevice, ...] | None]

#: Some rows, and how many devices they have more, in use and not.
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
        """Meanwhile so much is counted as one decision may count. What was counted is kept."""
        self._answers.limit(self._most_steps)
        try:
            yield
        except AnswersSpentError:
            text = f"gave up counting devices after {self._most_steps} steps"
            raise PluginError(f"{text}, the next attempt goes on from there") from None
        finally:
            self._answers.limit(None)

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
        self, wanted: DeviceClass, item: ResourceSlice, models: KnownModels
    ) -> tuple[SliceDevice, ...] | None:
        """The devices of a slice that a class selects; None where that cannot be told."""
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
        """A device as if nobody could share it."""
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
        #: What slices have, by name: the slice, its devices of the class, and what that amounts to.
        self._slices: dict[str, tuple[ResourceSlice, tuple[SliceDevice, ...] | None]] = {}
        self._shares: dict[str, list[_Share]] = {}
        #: The slices that are to be counted anew, by name.
        self._due: dict[str, None] = {}
        self.there: _Counts = np.zeros(0, np.int64)
        self.used: _Counts = np.zeros(0, np.int64)
        #: How many slices per row cannot be counted.
        self.broken: _Counts = np.zeros(0, np.int64)

    def catch_up(self, nodes: Nodes) -> None:
        """Looks again at whatever changed. What is left undone for once is done the next time."""
        log, size = nodes.devices.log, nodes.count(nodes.everything)
        # All that is known may have been counted anew, with a log of its own.
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
