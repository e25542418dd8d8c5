"""What a workload does while its operations go on: churn, and deletions at a rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from .blueprints import Blueprints
from .operations import Churn
from .target import Target
from .templates import Manifest

#: Does something each time it is asked for the next value.
Task = Iterator[object]


@dataclass(slots=True)
class Background:
    """Tasks, each with its interval; the next one due is done first."""

    _due: list[tuple[float, int, float, Task]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def add(self, task: Task, interval: float, now: float) -> None:
        """From one interval after now, and then at each further one."""
        heappush(self._due, (now + interval, next(self._numbers), interval, task))

    @property
    def next_moment(self) -> float | None:
        return self._due[0][0] if self._due else None

    def do(self, now: float) -> None:
        """Does what is due. As with a ticker, what was missed is done once, not several times."""
        while self._due and self._due[0][0] <= now:
            due, number, interval, task = heappop(self._due)
            if next(task, None) is not None:
                missed = (now - due) // interval
                heappush(self._due, (due + (missed + 1) * interval, number, interval, task))


def churning(operation: Churn, namespace: str, blueprints: Blueprints, target: Target) -> Task:
    """Makes one object of each template at a time; in mode recreate, deletes them in turn."""
    slots: list[list[Manifest]] = [[] for _ in range(operation.number)]
    numbers = count() if operation.mode == "recreate" or not slots else iter(range(len(slots)))
    for number in numbers:
        slot = slots[number % len(slots)] if operation.mode == "recreate" else []
        if slot:
            for manifest in slot:
                target.delete(manifest)
            slot.clear()
        else:
            slot += [
                blueprints.anything(path, namespace if blueprints.is_namespaced(path) else "")
                for path in operation.template_paths
            ]
            target.create(slot)
        yield number
