"""What CSINodes say, as columns: how many volumes a driver can attach, which plugins migrated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mooring.objects.csi import CSINode

from .arrays import grown

#: More than any node has volumes.
NO_LIMIT = 2**62


class CSINodeColumns:
    """A column per driver and per plugin that some CSINode has named."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._limits: dict[str, NDArray[np.int64]] = {}
        self._migrated: dict[str, NDArray[np.bool_]] = {}

    def limits(self, driver: str) -> NDArray[np.int64] | None:
        """int64 per row: how many volumes the driver attaches; None when no node has a limit."""
        return self._limits.get(driver)

    def migrated(self, plugin: str) -> NDArray[np.bool_] | None:
        """Per row whether the node uses a CSI driver in place of the plugin; None is nowhere."""
        return self._migrated.get(plugin)

    def set_row(self, row: int, node: CSINode | None) -> None:
        for limits in self._limits.values():
            limits[row] = NO_LIMIT
        for migrated in self._migrated.values():
            migrated[row] = False
        if node is None:
            return
        for driver, limit in node.limits.items():
            if driver not in self._limits:
                self._limits[driver] = np.full(self._capacity, NO_LIMIT, np.int64)
            self._limits[driver][row] = limit
        for plugin in node.migrated_plugins:
            if plugin not in self._migrated:
                self._migrated[plugin] = np.zeros(self._capacity, np.bool_)
            self._migrated[plugin][row] = True

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for driver, limits in self._limits.items():
            self._limits[driver] = grown(limits, capacity, NO_LIMIT)
        for plugin, migrated in self._migrated.items():
            self._migrated[plugin] = grown(migrated, capacity, False)

    def told(self, row: int) -> tuple[dict[str, int], set[str]]:
        """What the columns say of one row."""
        limits = {
            driver: int(column[row])
            for driver, column in self._limits.items()
            if column[row] != NO_LIMIT
        }
        return limits, {plugin for plugin, column in self._migrated.items() if column[row]}
