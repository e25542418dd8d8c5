"""Pods that wait for something to happen, filed under the plugins whose events can wake them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import floor

from .heap import PodHeap
from .queued_pod import Place, QueuedPod

#: How often pods are looked for that have waited too long, in seconds.
SWEEP_SECONDS = 30

_Label = tuple[str, str]


class Parked:
    """Unschedulable and gated pods; a gated one is filed only under the plugin that holds it."""

    __slots__ = ("_files", "_labels", "_patience", "_sweeps", "gated")

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._files: dict[_Label, dict[str, QueuedPod]] = {}
        self._labels: dict[str, tuple[_Label, ...]] = {}
        self._sweeps = PodHeap()
        #: The uids of gated pods.
        self.gated: set[str] = set()

    def __len__(self) -> int:
        return len(self._labels)

    def __contains__(self, uid: str) -> bool:
        return uid in self._labels

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._sweeps)

    def add(self, queued: QueuedPod) -> None:
        """Files a pod that is not here."""
        uid, profile = queued.pod.uid, queued.pod.spec.scheduler_name
        if queued.place is Place.GATED:
            self.gated.add(uid)
            labels: tuple[_Label, ...] = ((profile, queued.gated_by),)
        else:
            labels = tuple((profile, plugin) for plugin in queued.blamed)
        # Kept, because the verdicts on a pod may change before it is taken out.
        self._labels[uid] = labels
        for label in labels:
            self._files.setdefault(label, {})[uid] = queued
        self._sweeps.push(queued, self._swept_at(queued))

    def remove(self, uid: str) -> None:
        """Takes out a pod that is here."""
        for label in self._labels.pop(uid):
            del self._files[label][uid]
        self._sweeps.remove(uid)
        self.gated.discard(uid)

    def filed_under(self, profile: str, plugins: Iterable[str]) -> list[QueuedPod]:
        """The pods of a profile that events of these plugins can wake."""
        found: dict[str, QueuedPod] = {}
        for plugin in plugins:
            found.update(self._files.get((profile, plugin), {}))
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
            uid, profile = queued.pod.uid, queued.pod.spec.scheduler_name
            gated = queued.place is Place.GATED
            wanted = {(profile, each) for each in ([queued.gated_by] if gated else queued.blamed)}
            found = {label for label, filed in self._files.items() if uid in filed}
            assert found == wanted, f"{uid} is filed under {found}, not {wanted}"
            assert found == set(self._labels[uid]), f"{uid} will leave {self._labels[uid]}"

    def _swept_at(self, queued: QueuedPod) -> float:
        end = max(queued.timestamp, queued.flushed) + self._patience
        return float((floor(end / SWEEP_SECONDS) + 1) * SWEEP_SECONDS)
