"""Counts the disks and volumes in use on each row, and keeps how many a driver can attach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.arrays import grow_to
from moorage.objects.csi import CSINode
from moorage.objects.in_tree import VolumeKey
from moorage.objects.pod import Pod
from moorage.objects.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
)
from moorage.objects.volume import Disk

from .objects import Storage

K = TypeVar("K")

_NOWHERE: Mapping[int, int] = {}

Counts = NDArray[np.int32]


class RowCounts(Generic[K]):
    """How many users each key has on each row. A layer does not change the counts under it."""

    def __init__(self, under: RowCounts[K] | None = None) -> None:
        self._under = under
        self._rows: dict[K, dict[int, int]] = {}

    def of(self, key: K) -> Mapping[int, int]:
        """Returns the rows with users of a key, and how many each has."""
        own = self._rows.get(key)
        if own is not None:
            return own
        return _NOWHERE if self._under is None else self._under.of(key)

    def add(self, key: K, row: int, amount: int) -> int:
        """Adds to the users of a key on a row; returns how many there are now."""
        rows = self._rows.get(key)
        if rows is None:
            rows = self._rows[key] = dict(self.of(key))
        now = rows[row] = rows.get(row, 0) + amount
        if now == 0:
            del rows[row]
            if not rows and self._under is None:
                del self._rows[key]
        return now

    def __iter__(self) -> Iterator[tuple[K, Mapping[int, int]]]:
        return iter(self._rows.items())


class VolumeUse:
    """Counts the volumes of pods on rows, and the volumes of attachments."""

    def __init__(self, storage: Storage, capacity: int, under: VolumeUse | None = None) -> None:
        self._storage = storage
        self._under = under
        self._capacity = capacity
        self.disks: RowCounts[Disk] = RowCounts(under.disks if under else None)
        #: How many pods use each volume.
        self.volumes: RowCounts[VolumeKey] = RowCounts(under.volumes if under else None)
        self.attachments: RowCounts[VolumeKey] = under.attachments if under else RowCounts()
        self._attached: dict[str, Counts] = {}
        #: By driver, the largest number in its column, as far as it was asked for.
        self._most_attached: dict[str, int] = {}
        #: By claim, the pods on rows that use it.
        self._users: dict[str, dict[str, tuple[Pod, int]]] = {}

    def layer(self) -> VolumeUse:
        """Returns equal counts that can be changed without changing these."""
        return VolumeUse(self._storage, self._capacity, self)

    # Reading

    def attached(self, driver: str) -> Counts | None:
        """Returns the number of distinct volumes of a driver per row; None if it has none."""
        own = self._attached.get(driver)
        if own is not None or self._under is None:
            return own
        return self._under.attached(driver)

    def most_attached(self, driver: str) -> int:
        """Returns the largest number of distinct volumes of a driver on any row."""
        known = self._most_attached.get(driver)
        if known is None:
            column = self.attached(driver)
            known = 0 if column is None else int(column.max(initial=0))
            self._most_attached[driver] = known
        return known

    def conflicting_rows(self, disk: Disk) -> set[int]:
        """Returns the rows on which a pod uses the disk in a way that rejects this use of it."""
        rows = set(self.disks.of(Disk(disk.kind, disk.identity)))
        if not disk.read_only:
            rows.update(self.disks.of(Disk(disk.kind, disk.identity, read_only=True)))
        return rows

    def is_used(self, claim_key: str) -> bool:
        """Returns whether a pod on some row names the claim."""
        name = claim_key.partition("/")[2]
        users = self._users.get(claim_key, {}).values()
        return any(use == (name, False) for pod, _ in users for use in pod.claims)

    # Writing

    def count(self, pod: Pod, row: int, amount: int) -> None:
        """Counts the disks and volumes of a pod that came to (1) or left (-1) a row."""
        for disk in pod.spec.disks:
            self.disks.add(disk, row, amount)
        self.count_volumes(pod, row, amount)
        if self._under is None:
            self._note_claims(pod, row, amount)

    def count_volumes(self, pod: Pod, row: int, amount: int) -> None:
        """Counts the volumes of such a pod; claims and volumes say which they are."""
        for key in self._storage.volumes_of(pod):
            if self._under is None:
                self._storage.followed.touch(key)
            before = self.volumes.add(key, row, amount) - amount
            if (before == 0 or before + amount == 0) and row not in self.attachments.of(key):
                self._count_attached(key[0], row, amount)

    def count_attachment(self, key: VolumeKey, row: int, amount: int) -> None:
        """Counts a volume that was attached to (1) or detached from (-1) a row."""
        before = self.attachments.add(key, row, amount) - amount
        if (before == 0 or before + amount == 0) and row not in self.volumes.of(key):
            self._count_attached(key[0], row, amount)

    def touched_by(self, item: StorageObject) -> list[tuple[Pod, int]]:
        """Returns the pods on rows whose volumes may change with an object."""
        claims: Iterable[str] = ()
        if isinstance(item, PersistentVolumeClaim):
            claims = (item.key,)
        elif isinstance(item, PersistentVolume):
            claims = self._storage.claims_on(item.name)
        elif isinstance(item, StorageClass):
            claims = self._users
        found: dict[str, tuple[Pod, int]] = {}
        for key in claims:
            if key in self._users:
                found.update(self._users[key])
        return list(found.values())

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for driver, column in self._attached.items():
            self._attached[driver] = grow_to(column, capacity)

    @property
    def drivers(self) -> tuple[str, ...]:
        return tuple(self._attached)

    @property
    def users(self) -> Mapping[str, Mapping[str, tuple[Pod, int]]]:
        return self._users

    def _count_attached(self, driver: str, row: int, amount: int) -> None:
        """Counts a volume that a row has now (1) or has no more (-1)."""
        column = self._column(driver)
        before = column.item(row)
        now = column[row] = before + amount
        most = self._most_attached.get(driver, now)
        if now > most:
            self._most_attached[driver] = now
        elif before == most:
            # Another row may have as many.
            del self._most_attached[driver]

    def _column(self, driver: str) -> Counts:
        own = self._attached.get(driver)
        if own is None:
            below = None if self._under is None else self._under.attached(driver)
            own = np.zeros(self._capacity, np.int32) if below is None else below.copy()
            self._attached[driver] = own
        return own

    def _note_claims(self, pod: Pod, row: int, amount: int) -> None:
        for _, key, _ in self._storage.uses_of(pod):
            if amount > 0:
                self._users.setdefault(key, {})[pod.uid] = pod, row
            else:
                users = self._users.get(key, {})
                users.pop(pod.uid, None)
                if not users:
                    self._users.pop(key, None)


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
