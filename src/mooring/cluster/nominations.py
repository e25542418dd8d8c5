"""Pods that wait for a place on a certain node, mostly because others were evicted for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.objects.coexist import is_exclusive
from mooring.objects.pod import Pod

from .columns import Columns
from .taken import Taken


class Nominations:
    """Which pod is nominated to which node. A node need not exist."""

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, Pod]] = {}
        #: What nominated pods will take, per row, by their priority.
        self._levels: dict[int, Taken] = {}
        #: How many of the pods tolerate no others.
        self.exclusive_count = 0

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
        self.exclusive_count += is_exclusive(pod)

    def drop(self, uid: str) -> Pod | None:
        """Ends a pod's nomination; returns the pod as it was nominated."""
        node_name = self._node_of.pop(uid, "")
        if not node_name:
            return None
        pods = self._pods_on[node_name]
        pod = pods.pop(uid)
        if not pods:
            del self._pods_on[node_name]
        self.exclusive_count -= is_exclusive(pod)
        return pod

    def count(self, pod: Pod, row: int, amount: int, columns: Columns) -> None:
        """A nomination to a row began (1) or ended (-1)."""
        shape = columns.requested.array.shape
        level = self._levels.get(pod.priority)
        level = Taken.nothing(shape) if level is None else level.fitted(shape)
        self._levels[pod.priority] = level
        level.count(pod, row, amount, columns.resources)
        if amount < 0 and not level.pods(columns.resources).any():
            del self._levels[pod.priority]

    def recount(self, rows: Mapping[str, int], columns: Columns) -> None:
        """Counts all anew: some resource got or lost its column."""
        self._levels.clear()
        for node_name, pods in self._pods_on.items():
            if node_name in rows:
                for pod in pods.values():
                    self.count(pod, rows[node_name], 1, columns)

    def weight(self, priority: int, columns: Columns) -> Taken | None:
        """What pods of at least a priority will take, per row; None if there are none."""
        shape = columns.requested.array.shape
        total: Taken | None = None
        for level_priority, level in self._levels.items():
            if level_priority >= priority:
                level = level.fitted(shape)
                total = level if total is None else total + level
        return total
