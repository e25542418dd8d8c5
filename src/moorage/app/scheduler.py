"""The loop: events go into the engine, its actions go to the performer."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from time import monotonic, time
from typing import Protocol

import msgspec

from moorage.engine import Engine
from moorage.engine.actions import Action
from moorage.engine.events import Applied, Event, Removed
from moorage.objects.kinds import Object
from moorage.record.recorder import Recorder

from . import logs
from .extender_calls import KeptManifests

_log = logs.make_log(__name__)

# So many actions may be under way before no further decision is made: what is decided long
# before it can be carried out is decided on old news.
_MOST_UNDER_WAY = 256

# Decisions made at a time, before the wire is looked at again.
_BUDGET = 64

# Events taken in at a time, likewise.
_INTAKE = 512


class Feed:
    """The sink of reflectors. With a recorder or extenders, it keeps the JSON of objects."""

    def __init__(
        self,
        tell: Callable[[Event], None],
        recorder: Recorder | None = None,
        manifests: KeptManifests | None = None,
    ) -> None:
        """`manifests` keeps the texts that extenders may be sent."""
        self._tell = tell
        self._recorder = recorder
        self._manifests = manifests
        #: How often an object could not be read, by kind.
        self.left_out: Counter[str] = Counter()

    def applied(self, item: Object, raw: bytes | msgspec.Raw) -> None:
        if self._manifests is not None:
            self._manifests.keep(item, raw)
        event = Applied(item) if self._recorder is None else self._recorder.make_event(item, raw)
        self._tell(event)

    def removed(self, item: Object) -> None:
        if self._manifests is not None:
            self._manifests.drop(item)
        self._tell(Removed(item))

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        self.left_out[kind] += 1
        _log.error("Left out an object that cannot be read", kind=kind, object=key, problem=problem)


class ActionQueue(Protocol):
    """Carries out actions."""

    @property
    def backlog(self) -> int: ...

    def perform(self, action: Action) -> None: ...


class Scheduler:
    """Drives an engine. All of it runs in one task, so decisions never interleave."""

    def __init__(
        self,
        engine: Engine,
        clock: Callable[[], float] = monotonic,
        recorder: Recorder | None = None,
    ) -> None:
        self.engine = engine
        self.clock = clock
        self._recorder = recorder
        self._inbox: deque[Event] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._performer: ActionQueue | None = None
        self._caught_up: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # As events like others, so that a recording has them.
        engine.on_answer = self._tell_from_anywhere

    def tell(self, event: Event) -> None:
        """Takes in an event."""
        self._inbox.append(event)
        self.wake()

    def _tell_from_anywhere(self, event: Event) -> None:
        """Takes in an event of a plugin: from this thread in a decision, or from another one."""
        self._inbox.append(event)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.wake)

    def lead(self, performer: ActionQueue) -> None:
        """Begins to decide. Until then it only follows the cluster."""
        self._performer = performer
        self.wake()

    def rest(self) -> None:
        """Stops deciding."""
        self._performer = None

    def wake(self) -> None:
        """Checks again whether there is something to do."""
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def catch_up(self) -> None:
        """Returns once all events so far are taken in."""
        caught_up = self._caught_up = asyncio.Event()
        self.wake()
        await caught_up.wait()

    async def run(self) -> None:
        """Follows the cluster, and schedules while it leads, until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            self._take_in()
            if self._decide() or self._inbox:
                # What came over the wire meanwhile goes first.
                await asyncio.sleep(0)
            else:
                await self._pause()

    def _take_in(self) -> None:
        now = self.clock()
        if self._recorder is not None:
            self._recorder.rotate(self.engine, now)
        for _ in range(min(_INTAKE, len(self._inbox))):
            event = self._inbox.popleft()
            if self._recorder is not None:
                self._recorder.write_event(event, now)
            self.engine.handle(event, now)
        if self._caught_up is not None and not self._inbox:
            self._caught_up.set()

    def _decide(self) -> bool:
        performer = self._ready_performer()
        if performer is None:
            return False
        self.engine.cluster.tell_time(time())
        actions = self._step(self.clock())
        for action in actions:
            performer.perform(action)
        return bool(actions)

    def _step(self, now: float) -> list[Action]:
        if self._recorder is None:
            return self.engine.step(now, _BUDGET)
        return self._recorder.step(self.engine, now, _BUDGET)

    def _ready_performer(self) -> ActionQueue | None:
        performer = self._performer
        if performer is None or performer.backlog > _MOST_UNDER_WAY - _BUDGET:
            return None
        return performer

    async def _pause(self) -> None:
        """Waits for an event, or for the time at which the engine has something to do."""
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        alarm = None
        # While too much is under way, the end of some of it is what is waited for.
        if self._ready_performer() is not None:
            now = self.clock()
            due = self.engine.next_step(now)
            if due is not None:
                alarm = loop.call_later(max(0.0, due - now), self.wake)
        try:
            await waiter
        finally:
            self._waiter = None
            if alarm is not None:
                alarm.cancel()
