"""Runs a trace in virtual time: pods come, are placed, run and leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

import msgspec

from moorage.engine import Engine
from moorage.engine.actions import Action, BindPod, EvictPod
from moorage.engine.events import Applied, Removed
from moorage.objects.pod import Pod
from moorage.world import World

from .arrivals import Arrival, ArrivalTrace

# Decisions made at a time.
_BUDGET = 256
# When nothing comes or goes any more, pods that wait are tried for so long.
_PATIENCE_SECONDS = 600.0
# Unused answers are dropped so often in the course of a trace.
_SWEEPS = 50
# A step that did nothing is repeated so often, in case it has begun something.
_MOST_IDLE_STEPS = 3


@dataclass(slots=True)
class TracePod:
    """A pod of the trace: since when it waits, and how long it will run."""

    pod: Pod
    since: float
    seconds: float | None
    #: When it was placed; None while it waits.
    placed: float | None = None


@dataclass(slots=True)
class VirtualRun:
    """An engine that runs a trace.

    Its actions succeed at once. An evicted pod comes again, as its controller would recreate it,
    and then runs for its whole time.
    """

    engine: Engine
    trace: ArrivalTrace
    #: Called with the time before anything that happens later.
    look: Callable[[float], None] = lambda until: None
    now: float = 0.0
    world: World = field(init=False)
    #: The pods that are there, by uid.
    pods: dict[str, TracePod] = field(default_factory=dict)
    waiting: int = 0
    preemptions: int = 0
    #: How long each pod waited that was placed, in the order of their placement.
    waits: list[float] = field(default_factory=list)
    _ends: list[tuple[float, int, str]] = field(default_factory=list)
    _order: count[int] = field(default_factory=count)
    _come: int = 0
    _changed: int = 0
    _quiet_since: float | None = None

    def __post_init__(self) -> None:
        self.world = World(self.engine)

    def run(self) -> None:
        """Runs until nothing comes, goes or can be placed any more."""
        # Time passes in leaps: nobody measures meanwhile, and answers would always be too old.
        self.engine.cluster.extended.stop_ageing()
        # Trying pods again every few minutes, in case an event was missed, takes most of the time.
        self.engine.queue.wait_for_events()
        if self.trace.arrivals:
            seconds = self.trace.arrivals[-1].at - self.trace.arrivals[0].at
            self.engine.sweep_seconds = max(self.engine.sweep_seconds, seconds / _SWEEPS)
        for item in self.trace.objects:
            self.world.apply(item, 0.0)
        while (moment := self._next_moment()) is not None:
            self.look(moment)
            self.now = moment
            self._take_in()
            self._decide()
        self.look(self.now)

    def _next_moment(self) -> float | None:
        moments = []
        if self._ends:
            moments.append(self._ends[0][0])
        if self._come < len(self.trace.arrivals):
            moments.append(self.trace.arrivals[self._come].at)
        if self._changed < len(self.trace.changes):
            moments.append(self.trace.changes[self._changed][0])
        self._quiet_since = None if moments else (self._quiet_since or self.now)
        retry = self._next_retry()
        if retry is not None:
            moments.append(retry)
        return max(self.now, min(moments)) if moments else None

    def _next_retry(self) -> float | None:
        """Returns when a woken pod is tried. A pod that nothing woke would fail again."""
        sizes = self.engine.queue.sizes()
        if not (sizes["active"] or sizes["backoff"]):
            return None
        if self._quiet_since is not None and self.now > self._quiet_since + _PATIENCE_SECONDS:
            return None
        return self.engine.next_step(self.now)

    def _take_in(self) -> None:
        """Applies the events of this moment: first pods leave, so that others find room."""
        while self._ends and self._ends[0][0] <= self.now:
            self._end(heappop(self._ends)[2])
        changes = self.trace.changes
        while self._changed < len(changes) and changes[self._changed][0] <= self.now:
            self._change(changes[self._changed][1])
            self._changed += 1
        arrivals = self.trace.arrivals
        while self._come < len(arrivals) and arrivals[self._come].at <= self.now:
            self._arrive(arrivals[self._come])
            self._come += 1

    def _arrive(self, arrival: Arrival) -> None:
        self._submit(arrival.pod, arrival.seconds)

    def _submit(self, pod: Pod, seconds: float | None) -> None:
        self.pods[pod.uid] = TracePod(pod, self.now, seconds)
        self.waiting += 1
        self.world.apply(pod, self.now)

    def _end(self, uid: str) -> None:
        """Ends a pod that has run for its time, unless it was evicted before."""
        pod = self.world.pods.get(uid)
        if self.pods.pop(uid, None) is not None and pod is not None:
            self.world.remove(pod, self.now)

    def _change(self, event: Applied | Removed) -> None:
        item = event.object
        if isinstance(event, Applied):
            self.world.apply(item, self.now)
        elif not isinstance(item, Pod):
            self.world.remove(item, self.now)
        elif item.uid in self.world.pods:
            left = self.pods.pop(item.uid, None)
            self.waiting -= left is not None and left.placed is None
            self.world.remove(self.world.pods[item.uid], self.now)

    def _decide(self) -> None:
        """Decides until nothing is left to decide at this moment."""
        idle = 0
        while idle < _MOST_IDLE_STEPS:
            actions = self.engine.step(self.now, _BUDGET)
            for action in actions:
                self._perform(action)
            idle = 0 if actions else idle + 1
            due = self.engine.next_step(self.now)
            if not actions and (due is None or due > self.now):
                return

    def _perform(self, action: Action) -> None:
        match action:
            case BindPod():
                self.world.bind(action, self.now)
                self._place(action.pod.uid)
            case EvictPod():
                victim = self.world.evict(action, self.now)
                if victim is not None:
                    self._come_again(victim)
            case _:
                self.world.perform((action,), self.now)

    def _place(self, uid: str) -> None:
        known = self.pods.get(uid)
        if known is None:
            return
        known.placed = self.now
        self.waiting -= 1
        self.waits.append(self.now - known.since)
        if known.seconds is not None:
            heappush(self._ends, (self.now + known.seconds, next(self._order), uid))

    def _come_again(self, victim: Pod) -> None:
        self.preemptions += 1
        known = self.pods.pop(victim.uid, None)
        if known is None:
            # It was there from the beginning, and nobody knows who made it.
            return
        self.waiting -= known.placed is None
        name = f"{known.pod.uid.partition('#')[0]}#{next(self._order)}"
        self._submit(msgspec.structs.replace(known.pod, uid=name), known.seconds)
