"""A trace: the objects at the beginning, the pods that come, when, and how long they run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from moorage.engine.events import Applied, Removed
from moorage.objects.kinds import Object
from moorage.objects.node import Node
from moorage.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod that comes to be placed."""

    at: float
    pod: Pod
    #: How long it runs once it is placed; None means for ever.
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ArrivalTrace:
    """Pods that come and go; times are seconds since the beginning."""

    name: str
    #: In order of their times.
    arrivals: tuple[Arrival, ...]
    #: What is there from the beginning.
    objects: tuple[Object, ...] = ()
    #: Other objects that come, change or go, and pods that are removed, in order.
    changes: tuple[tuple[float, Applied | Removed], ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(item for item in self.objects if isinstance(item, Node))

    @property
    def pods(self) -> tuple[Pod, ...]:
        return tuple(each.pod for each in self.arrivals)

    def without_ends(self) -> ArrivalTrace:
        """Returns the same trace in which no pod leaves."""
        stay = tuple(replace(each, seconds=None) for each in self.arrivals)
        return replace(self, arrivals=stay)

    def on(self, objects: Iterable[Object]) -> ArrivalTrace:
        """Returns the same pods on another cluster, which only they change."""
        return replace(self, objects=tuple(objects), changes=())
