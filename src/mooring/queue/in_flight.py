"""Pods that are being scheduled, and what happened since each of them was popped."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import islice

from .listeners import Happening
from .queued_pod import QueuedPod


class InFlight:
    """Remembers what happened for as long as a pod that was popped before it is in flight."""

    __slots__ = ("_dropped", "_happenings", "_started")

    def __init__(self) -> None:
        # In the order of their pop, hence of their numbers.
        self._started: OrderedDict[str, tuple[QueuedPod, int]] = OrderedDict()
        self._happenings: deque[Happening] = deque()
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._started)

    def __contains__(self, uid: str) -> bool:
        return uid in self._started

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for queued, _ in self._started.values())

    def get(self, uid: str) -> QueuedPod | None:
        """The pod in flight of this uid."""
        started = self._started.get(uid)
        return started[0] if started else None

    @property
    def remembered(self) -> tuple[Happening, ...]:
        """What some pod in flight may have missed, oldest first."""
        return tuple(self._happenings)

    def start(self, queued: QueuedPod) -> None:
        """Takes in a pod; what happens from now on concerns it."""
        self._started[queued.pod.uid] = (queued, self._dropped + len(self._happenings))

    def end(self, uid: str) -> None:
        """Lets go of a pod, and of what no other pod needs to know."""
        self._started.pop(uid, None)
        if not self._started:
            self._dropped += len(self._happenings)
            self._happenings.clear()
            return
        _, oldest = next(iter(self._started.values()))
        while self._dropped < oldest:
            self._happenings.popleft()
            self._dropped += 1

    def record(self, happening: Happening) -> None:
        """Remembers it if a pod is in flight."""
        if self._started:
            self._happenings.append(happening)

    def missed_by(self, uid: str) -> tuple[Happening, ...] | None:
        """What happened since the pod was popped; None if it is not in flight."""
        started = self._started.get(uid)
        if started is None:
            return None
        return tuple(islice(self._happenings, started[1] - self._dropped, None))
