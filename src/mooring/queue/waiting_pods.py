"""Heaps of waiting pods, and the pods that wait for an event, by the plugins that listen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from math import floor
from typing import Any

from mooring.framework.calls import PASSING

from .queued_pod import Place, QueuedPod

#: How often pods are looked for that have waited too long, in seconds.
SWEEP_SECONDS = 30

_Label = tuple[str, str]

#: What like pods share: template, namespace, labels, and who keeps them waiting.
_Kind = tuple[int, str, tuple[tuple[str, str], ...], frozenset[str], frozenset[str], str]

#: Pods that every plugin whose hints are alike tells the same, by uid. Never empty.
Group = dict[str, QueuedPod]

# A heap this small is not worth tidying.
_SLACK = 64

_Item = tuple[Any, int, int, QueuedPod]


def _give_up(error: BaseException) -> None:
    raise error


class PodHeap:
    """Pods by key, ties by arrival. Removed pods leave an item behind that is skipped later.

    Where keys cannot be compared, `repair` is called, which must `reorder` the heap.
    """

    __slots__ = ("_items", "_live", "_repair", "_serials")

    def __init__(self, repair: Callable[[BaseException], None] = _give_up) -> None:
        self._repair = repair
        self._items: list[_Item] = []
        self._live: dict[str, _Item] = {}
        # Unique, so that comparing two items never reaches the pods.
        self._serials = count()

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, uid: str) -> bool:
        return uid in self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        return (item[3] for item in self._live.values())

    def push(self, queued: QueuedPod, key: Any) -> None:
        """Puts in a pod that is not in the heap."""
        item = (key, queued.arrival, next(self._serials), queued)
        self._live[queued.pod.uid] = item
        try:
            heappush(self._items, item)
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001 - comparing keys is a plugin's code
            self._repair(error)

    def remove(self, uid: str) -> None:
        """Takes out a pod that is in the heap."""
        del self._live[uid]
        if len(self._items) > 2 * len(self._live) + _SLACK:
            self._tidy()

    def reorder(self, key: Callable[[QueuedPod], Any]) -> None:
        """Orders all pods by another key."""
        for uid, (_, arrival, serial, queued) in self._live.items():
            self._live[uid] = key(queued), arrival, serial, queued
        self._tidy()

    def _tidy(self) -> None:
        self._items = list(self._live.values())
        try:
            heapify(self._items)
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001 - comparing keys is a plugin's code
            self._repair(error)

    def pop(self) -> QueuedPod | None:
        """Takes out the pod with the smallest key."""
        item = self._first()
        if item is None:
            return None
        del self._live[item[3].pod.uid]
        return item[3]

    def head(self) -> QueuedPod | None:
        """The pod with the smallest key, which stays in."""
        item = self._first()
        return item[3] if item else None

    def head_key(self) -> Any:
        """The smallest key, or None."""
        item = self._first()
        return item[0] if item else None

    def is_ready(self) -> bool:
        """Whether there is a pod to pop."""
        return bool(self._live)

    def is_before(self, other: PodHeap) -> bool:
        """Whether its first pod comes before that of another heap; neither is empty."""
        try:
            return self._find_order() < other._find_order()
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001 - comparing keys is a plugin's code
            self._repair(error)
        return self._find_order() < other._find_order()

    def _find_order(self) -> tuple[Any, int]:
        item = self._first()
        assert item is not None, "the heap is not empty"
        return item[0], item[1]

    def _first(self) -> _Item | None:
        while self._items:
            item = self._items[0]
            if self._live.get(item[3].pod.uid) is item:
                return item
            try:
                heappop(self._items)
            except PASSING:
                raise
            except BaseException as error:  # noqa: BLE001 - comparing keys is a plugin's code
                self._repair(error)
        return None


class UnschedulablePods:
    """Unschedulable and gated pods; a gated one is filed only under the plugin that holds it."""

    __slots__ = ("_files", "_groups", "_kinds", "_patience", "_sweeps", "gated")

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._groups: dict[_Kind, tuple[Group, tuple[_Label, ...]]] = {}
        self._files: dict[_Label, dict[_Kind, Group]] = {}
        # Kept, because the verdicts on a pod may change before it is taken out.
        self._kinds: dict[str, _Kind] = {}
        self._sweeps = PodHeap()
        #: The uids of gated pods.
        self.gated: set[str] = set()

    def __len__(self) -> int:
        return len(self._kinds)

    def __contains__(self, uid: str) -> bool:
        return uid in self._kinds

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._sweeps)

    def add(self, queued: QueuedPod) -> None:
        """Files a pod that is not here."""
        uid = queued.pod.uid
        if queued.place is Place.GATED:
            self.gated.add(uid)
        kind = self._kinds[uid] = _kind(queued)
        known = self._groups.get(kind)
        if known is None:
            known = self._groups[kind] = {}, _labels(queued)
            for label in known[1]:
                self._files.setdefault(label, {})[kind] = known[0]
        known[0][uid] = queued
        self._sweeps.push(queued, self._swept_at(queued))

    def remove(self, uid: str) -> None:
        """Takes out a pod that is here."""
        kind = self._kinds.pop(uid)
        group, labels = self._groups[kind]
        del group[uid]
        if not group:
            del self._groups[kind]
            for label in labels:
                del self._files[label][kind]
        self._sweeps.remove(uid)
        self.gated.discard(uid)

    def find_groups(self, profile: str, plugins: Iterable[str]) -> list[Group]:
        """The pods of a profile that events of these plugins can wake, in groups of like ones."""
        found: dict[_Kind, Group] = {}
        for plugin in plugins:
            filed = self._files.get((profile, plugin))
            if filed:
                found.update(filed)
        return list(found.values())

    def overdue(self, now: float) -> QueuedPod | None:
        """A pod that has waited too long, which stays in."""
        moment = self._sweeps.head_key()
        return self._sweeps.head() if moment is not None and moment <= now else None

    def next_sweep(self) -> float | None:
        """When the next pod has waited too long."""
        return self._sweeps.head_key()

    def check(self) -> None:
        """Raises AssertionError unless each pod is filed under the plugins that can wake it."""
        for queued in self:
            uid = queued.pod.uid
            wanted = set(_labels(queued))
            found = {
                label
                for label, filed in self._files.items()
                if any(uid in group for group in filed.values())
            }
            assert found == wanted, f"{uid} is filed under {found}, not {wanted}"
            assert self._kinds[uid] == _kind(queued), f"{uid} is among pods that it is not like"
        held = sum(len(group) for group, _ in self._groups.values())
        assert held == len(self), f"{held} pods in groups, but {len(self)} are unschedulable"

    def _swept_at(self, queued: QueuedPod) -> float:
        end = max(queued.timestamp, queued.flushed) + self._patience
        return float((floor(end / SWEEP_SECONDS) + 1) * SWEEP_SECONDS)


def _kind(queued: QueuedPod) -> _Kind:
    pod = queued.pod
    gated_by = queued.gated_by if queued.place is Place.GATED else ""
    # Templates differ by identity: while a group has pods, these keep it alive.
    labels = tuple(pod.labels.items())
    return id(pod.spec), pod.namespace, labels, queued.rejectors, queued.pending, gated_by


def _labels(queued: QueuedPod) -> tuple[_Label, ...]:
    profile = queued.pod.spec.scheduler_name
    plugins = (queued.gated_by,) if queued.place is Place.GATED else queued.blamed
    return tuple((profile, plugin) for plugin in plugins)
