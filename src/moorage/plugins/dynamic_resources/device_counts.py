"""Counts the devices of a class on nodes, and those of them in use. Scores read the counts.

Devices count as in kube-scheduler: in all slices, even of old generations and incomplete pools. A
node counts none if an expression fails for one of its slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Mask, Rows, View
from moorage.cluster.devices.device_classes import DeviceClasses
from moorage.cluster.devices.models import DeviceContent, DeviceModel, Models
from moorage.cluster.row_view import RowView
from moorage.framework.status import PluginError
from moorage.objects.device import (
    DeviceClass,
    NodeChoice,
    ResourceSlice,
    SliceDevice,
    choose_nodes,
)

from .selectors import AnswersSpentError, SelectorAnswers, SelectorProblem

#: The most steps of an evaluation that one decision may spend on counting, about 0.5 s. A look at a
#: device is one step.
MOST_STEPS_OF_COUNTS = 450_000

_Counts = NDArray[np.int64]

#: What is counted on each row: the devices of a class, how many of them are in use, and the slices
#: that cannot be counted.
THERE, USED, BROKEN = "there", "used", "broken"
_FIGURES = np.dtype([(name, np.int64) for name in (THERE, USED, BROKEN)])
Figures = NDArray[Any]

#: The models of the devices of a slice; None if they are not known.
KnownModels = Sequence[DeviceModel] | None

#: Returns the devices of a slice that a class selects; None if an expression fails.
Matching = Callable[[DeviceClass, ResourceSlice, KnownModels], tuple[SliceDevice, ...] | None]
_Devices = tuple[SliceDevice, ...] | None


class DeviceCounts:
    """Counts devices of classes per row."""

    def __init__(self, most_steps: int = MOST_STEPS_OF_COUNTS) -> None:
        self._answers = SelectorAnswers()
        self._most_steps = most_steps
        self._models = Models()
        self._among: tuple[DeviceClasses, int] | None = None
        self._counted: dict[int, ClassCounts] = {}

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
        among = nodes.devices.classes, nodes.devices.classes.version
        if among != self._among:
            self._among = among
            self._counted.clear()
        counted = self._counted.get(id(wanted))
        if counted is None:
            # It holds the class, so that no other class gets its id.
            counted = self._counted[id(wanted)] = ClassCounts(wanted, self.find_matching)
        figures = counted.current(nodes)[rows]
        whole = figures[BROKEN] == 0
        return figures[THERE] * whole, figures[USED] * whole

    def find_matching(
        self, wanted: DeviceClass, item: ResourceSlice, models: KnownModels
    ) -> tuple[SliceDevice, ...] | None:
        """Returns the devices of a slice that a class selects; None if an expression fails."""
        expressions = [each.cel.expression if each.cel else "" for each in wanted.selectors]
        self._answers.spend(len(item.devices))
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
            return model.content
        alone = msgspec.structs.replace(device, allow_multiple_allocations=None)
        return self._models.content(driver, alone)


class ClassCounts:
    """The devices of one class on each row."""

    def __init__(self, wanted: DeviceClass, matching: Matching) -> None:
        self._wanted = wanted
        self._matching = matching
        #: By name, each slice with its devices of the class.
        self._known: dict[str, tuple[ResourceSlice, _Devices]] = {}
        self._labels: object = None
        self._view: RowView[np.void]
        #: The devices of wide pools, which do not name their nodes.
        self._wide: Figures = np.zeros(0, _FIGURES)

    def current(self, nodes: View) -> Figures:
        """Returns the figures of all rows.

        If counting ends early, the next call knows the slices that were counted.
        """
        # Another object when a node comes, goes or changes its labels: slices may select by them.
        labels = nodes.derived.get(ClassCounts, object)
        if labels is not self._labels:
            self._view = RowView(nodes, Change.SLICES | Change.CLAIMS, partial(self._count, nodes))
            self._labels = labels
        return self._view.current()

    def _count(self, nodes: View, rows: Rows) -> Figures:
        groups = nodes.device_groups
        if isinstance(rows, slice):
            self._count_wide(nodes)
            # Nodes without pools of their own have only what wide pools add.
            places = {row: row for row in map(nodes.row, groups.named_nodes) if row is not None}
        else:
            places = {row: at for at, row in enumerate(rows.tolist()) if nodes.alive[row]}
        figures = self._wide[rows].copy()
        for row, at in places.items():
            for item in groups.slices_on(nodes.name(row)):
                _add(figures, at, self._find_devices(item, nodes), item, nodes)
        return figures

    def _count_wide(self, nodes: View) -> None:
        """Counts the slices of wide pools. A change of one of them is a change of all rows."""
        slices = nodes.devices.slices
        self._known = {name: known for name, known in self._known.items() if name in slices}
        self._wide = np.zeros(nodes.count(nodes.everything), _FIGURES)
        for item in nodes.device_groups.wide_slices():
            for choice, devices in _by_choice(item, self._find_devices(item, nodes)):
                _add(self._wide, nodes.choose(choice), devices, item, nodes)

    def _find_devices(self, item: ResourceSlice, nodes: View) -> _Devices:
        known = self._known.get(item.name)
        if known is None or known[0] is not item:
            models = nodes.devices.pools[item.driver, item.pool].known_models(item.name)
            known = self._known[item.name] = item, self._matching(self._wanted, item, models)
        return known[1]


def _add(
    figures: Figures, where: Mask | int, devices: _Devices, item: ResourceSlice, nodes: View
) -> None:
    """Adds devices of a slice to the figures of some rows."""
    if devices is None:
        figures[BROKEN][where] += 1
        return
    held = nodes.devices.use.held((item.driver, item.pool))
    figures[THERE][where] += len(devices)
    figures[USED][where] += sum(device.name in held for device in devices)


def _by_choice(item: ResourceSlice, devices: _Devices) -> Iterator[tuple[NodeChoice, _Devices]]:
    if devices is None or not item.is_per_device:
        # A slice that names no nodes counts everywhere.
        yield True if item.nodes is None else item.nodes, devices
        return
    for device in devices:
        choice = choose_nodes(device.node_name, device.all_nodes, device.node_selector)
        yield choice if choice is not None else False, (device,)
