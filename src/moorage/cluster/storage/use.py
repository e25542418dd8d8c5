"""Counts the disks and volumes in use on each row, and keeps how many a driver can attach."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.arrays import grow_to
from moorage.cluster.changes import Change
from moorage.cluster.ledger import Counts, Ledger
from moorage.objects.csi import CSINode
from moorage.objects.in_tree import VolumeKey
from moorage.objects.pod import Pod
from moorage.objects.volume import Disk

from .objects import Storage

#: A claim by its key, and whether it was made for its pod.
UsedClaim = tuple[str, bool]


class UsedStorage(Ledger[Disk | UsedClaim]):
    """The pods that use each disk and each claim."""

    def entries(self, pod: Pod) -> tuple[tuple[Disk | UsedClaim, int], ...]:
        if not pod.spec.volumes:
            return ()
        claims = (((f"{pod.namespace}/{name}", made), 1) for name, made in pod.claims)
        return *((disk, 1) for disk in pod.spec.disks), *claims


USED_STORAGE = UsedStorage(Change.VOLUMES)


class VolumeUse:
    """Counts the volumes of pods on rows, and the volumes of attachments.

    It is no ledger: volumes depend on claims, and a volume counts once, however it is used.
    """

    def __init__(self, storage: Storage, capacity: int) -> None:
        self._storage = storage
        #: How many pods use each volume.
        self.volumes: Counts[VolumeKey] = Counts(capacity)
        self.attachments: Counts[VolumeKey] = Counts(capacity)
        #: How many distinct volumes of each driver there are.
        self.attached: Counts[str] = Counts(capacity)
        #: By driver, the largest number in its column, as far as it was asked for.
        self._most_attached: dict[str, int] = {}

    def layer(self) -> VolumeUse:
        """Returns equal counts that can be changed without changing these."""
        other = copy(self)
        other._most_attached = self._most_attached.copy()
        other.volumes, other.attached = self.volumes.layer(), self.attached.layer()
        return other

    def most_attached(self, driver: str) -> int:
        """Returns the largest number of distinct volumes of a driver on any row."""
        known = self._most_attached.get(driver)
        if known is None:
            known = int(self.attached.column(driver).max(initial=0))
            self._most_attached[driver] = known
        return known

    def count(self, pod: Pod, row: int, amount: int) -> None:
        """Counts the volumes of a pod that came to (1) or left (-1) a row.

        Claims and volumes say which they are.
        """
        for key in self._storage.volumes_of(pod):
            now = self.volumes.add(key, row, amount)
            if now in (0, amount) and row not in self.attachments.of(key):
                self._count_attached(key[0], row, amount)

    def count_attachment(self, key: VolumeKey, row: int, amount: int) -> None:
        """Counts a volume that was attached to (1) or detached from (-1) a row."""
        now = self.attachments.add(key, row, amount)
        if now in (0, amount) and row not in self.volumes.of(key):
            self._count_attached(key[0], row, amount)

    def grow(self, capacity: int) -> None:
        for counts in (self.volumes, self.attachments, self.attached):
            counts.grow(capacity)

    def _count_attached(self, driver: str, row: int, amount: int) -> None:
        """Counts a volume that a row has now (1) or has no more (-1)."""
        now = self.attached.add(driver, row, amount)
        most = self._most_attached.get(driver, now)
        if now > most:
            self._most_attached[driver] = now
        elif now - amount == most:
            # Another row may have as many.
            del self._most_attached[driver]


#: A limit above the number of volumes of any node.
NO_LIMIT = 2**62


class AttachLimits:
    """Columns for each driver and in-tree plugin that some CSINode names."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._limits: dict[str, NDArray[np.int64]] = {}
        #: By driver, the smallest number in its column, as far as it was asked for.
        self._least_limits: dict[str, int] = {}
        self._installed: dict[str, NDArray[np.bool_]] = {}
        self._migrated: dict[str, NDArray[np.bool_]] = {}

    def installed(self, driver: str) -> NDArray[np.bool_] | None:
        """Returns for each row whether the node has the driver; None if no node has it."""
        return self._installed.get(driver)

    def limits(self, driver: str) -> NDArray[np.int64] | None:
        """Returns for each row how many volumes a driver attaches; None if no node has a limit."""
        return self._limits.get(driver)

    def least_limit(self, driver: str) -> int:
        """Returns the smallest number of volumes that a driver attaches on any row."""
        known = self._least_limits.get(driver)
        if known is None:
            limits = self.limits(driver)
            known = NO_LIMIT if limits is None else int(limits.min(initial=NO_LIMIT))
            self._least_limits[driver] = known
        return known

    def migrated(self, plugin: str) -> NDArray[np.bool_] | None:
        """Returns for each row whether the node uses a CSI driver instead of an in-tree plugin.

        None if no node does.
        """
        return self._migrated.get(plugin)


class CSINodeColumns(AttachLimits):
    """The columns with the methods that change them, which only the cluster calls."""

    def set_row(self, row: int, node: CSINode | None) -> None:
        self._least_limits.clear()
        for limits in self._limits.values():
            limits[row] = NO_LIMIT
        for mask in (*self._installed.values(), *self._migrated.values()):
            mask[row] = False
        if node is None:
            return
        for driver, limit in node.limits.items():
            if driver not in self._limits:
                self._limits[driver] = np.full(self._capacity, NO_LIMIT, np.int64)
            self._limits[driver][row] = limit
        self._mark(self._installed, node.drivers, row)
        self._mark(self._migrated, node.migrated_plugins, row)

    def _mark(self, columns: dict[str, NDArray[np.bool_]], names: frozenset[str], row: int) -> None:
        for name in names:
            if name not in columns:
                columns[name] = np.zeros(self._capacity, np.bool_)
            columns[name][row] = True

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for driver, limits in self._limits.items():
            self._limits[driver] = grow_to(limits, capacity, NO_LIMIT)
        for columns in (self._installed, self._migrated):
            for name, mask in columns.items():
                columns[name] = grow_to(mask, capacity, False)

    def describe_row(self, row: int) -> tuple[dict[str, int], set[str], set[str]]:
        """Returns the limits, the installed drivers and the migrated plugins of one row."""
        limits = {
            driver: int(column[row])
            for driver, column in self._limits.items()
            if column[row] != NO_LIMIT
        }
        installed, migrated = (
            {name for name, column in columns.items() if column[row]}
            for columns in (self._installed, self._migrated)
        )
        return limits, installed, migrated
