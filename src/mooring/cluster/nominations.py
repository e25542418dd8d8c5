"""Pods that wait for a place on a certain node, mostly because others were evicted for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.objects.resources import PODS

from .arrays import grown
from .columns import Columns


class Nominations:
    """Which pod is nominated to which node. A node need not exist."""

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, Pod]] = {}
        #: What nominated pods ask for, int64[resource, row], by their priority.
        self._levels: dict[int, NDArray[np.int64]] = {}

    def node_of(self, pod: Pod) -> str:
        """The node a pod is nominated to, or an empty name."""
        return self._node_of.get(pod.uid, "")

    def on(self, node_name: str) -> Mapping[str, Pod]:
        """The pods nominated to a node, by uid."""
        return self._pods_on.get(node_name, {})

    def __bool__(self) -> bool:
        return bool(self._node_of)

    def __iter__(self) -> Iterator[tuple[str, Mapping[str, Pod]]]:
        """Nodes with their nominated pods."""
        return iter(self._pods_on.items())

    def put(self, pod: Pod, node_name: str) -> None:
        self._node_of[pod.uid] = node_name
        self._pods_on.setdefault(node_name, {})[pod.uid] = pod

    def drop(self, uid: str) -> Pod | None:
        """Ends a pod's nomination; returns the pod as it was nominated."""
        node_name = self._node_of.pop(uid, "")
        if not node_name:
            return None
        pods = self._pods_on[node_name]
        pod = pods.pop(uid)
        if not pods:
            del self._pods_on[node_name]
        return pod

    def count(self, pod: Pod, row: int, amount: int, columns: Columns) -> None:
        """A nomination to a row began (1) or ended (-1); every resource has its column already."""
        shape = columns.requested.shape
        level = self._levels.get(pod.priority)
        if level is None:
            level = np.zeros(shape, np.int64)
        elif level.shape != shape:
            level = _fitted(level, shape)
        self._levels[pod.priority] = level
        for name, request in pod.held.requests:
            level[columns.resources[name], row] += amount * request
        level[columns.resources[PODS], row] += amount
        if amount < 0 and not level[columns.resources[PODS]].any():
            del self._levels[pod.priority]

    def weight(self, priority: int, columns: Columns) -> NDArray[np.int64] | None:
        """What pods of at least a priority ask for, int64[resource, row]; None if none do."""
        shape = columns.requested.shape
        total: NDArray[np.int64] | None = None
        for level_priority, level in self._levels.items():
            if level_priority >= priority:
                level = level if level.shape == shape else _fitted(level, shape)
                total = level if total is None else total + level
        return total


def _fitted(level: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """A level with room for resources and rows that came later."""
    resources, rows = shape
    more = np.zeros((resources, level.shape[1]), np.int64)
    more[: len(level)] = level
    return grown(more, rows)[:, :rows]
