"""The rows as they would be with some pods more or fewer. The cluster itself is not touched."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.objects.resources import PODS

from .columns import NONZERO_CPU, NONZERO_MEMORY
from .nodes import Nodes
from .ports import PortColumns


class WhatIf(Nodes):
    """Copied rows. What is counted over whole domains is kept by the plugins that count it."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes._state)
        self.requested = nodes.requested.copy()
        self.nonzero_requested = nodes.nonzero_requested.copy()
        self.ports = nodes.ports
        self._own_ports = False

    def add_pod(self, pod: Pod, row: int) -> None:
        self._count(pod, row, 1)
        if pod.spec.host_ports:
            self._writable_ports().count(pod.spec.host_ports, row, 1, len(self.alive))

    def remove_pod(self, pod: Pod, row: int) -> None:
        self._count(pod, row, -1)
        if pod.spec.host_ports:
            # As in kube-scheduler, where a node's ports are a set, not a count.
            self._writable_ports().vacate(pod.spec.host_ports, row)

    def shift(self, rows: NDArray[np.intp], requests: NDArray[np.int64]) -> None:
        """Changes what is requested on many rows at once: int64[resource, place in rows]."""
        self.requested[:, rows] += requests

    def _count(self, pod: Pod, row: int, amount: int) -> None:
        held = pod.held
        for name, request in held.requests:
            self.requested[self.resources[name], row] += amount * request
        self.requested[self.resources[PODS], row] += amount
        self.nonzero_requested[NONZERO_CPU, row] += amount * held.nonzero_cpu_milli
        self.nonzero_requested[NONZERO_MEMORY, row] += amount * held.nonzero_memory_bytes

    def _writable_ports(self) -> PortColumns:
        if not self._own_ports:
            self.ports = self.ports.copied()
            self._own_ports = True
        return self.ports
