"""Runs beside another scheduler: watches, decides the same pods, and writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import perf_counter, time

from moorage.client.api import Api
from moorage.client.connection import Connection
from moorage.engine import Engine
from moorage.engine.actions import Report
from moorage.engine.events import Event
from moorage.record.recorder import Recorder
from moorage.world.shadow_judge import Shadow

from . import logs
from .python_garbage import freeze_objects
from .scheduler import Feed
from .worker import make_reflectors

# What happens meanwhile is taken in together: nobody waits for a shadow, and it shares a machine. A
# recording has the times of events.
_PAUSE_SECONDS = 0.25
# The engine sweeps this often, too.
_SWEEP_SECONDS = 60.0

_log = logs.make_log(__name__)


class ShadowFollower:
    """Takes in what reflectors deliver."""

    def __init__(
        self, shadow: Shadow, recorder: Recorder | None, clock: Callable[[], float]
    ) -> None:
        self.shadow = shadow
        self._recorder = recorder
        self._clock = clock
        self._now = self._next_sweep = 0.0
        if recorder is not None:
            shadow.on_judged = lambda judged: recorder.write_judged(judged, self._now)

    def take_in(self, event: Event) -> None:
        # A clock that is set back must not make what came later the earlier.
        now = self._now = max(self._now, self._clock())
        if self._recorder is not None:
            self._recorder.rotate(self.shadow.engine, now)
            self._recorder.write_event(event, now)
        self.shadow.handle(event, now)
        if now >= self._next_sweep:
            self._sweep(now)

    def _sweep(self, now: float) -> None:
        """Lets the engine drop unused answers. Without a budget it decides nothing."""
        self._next_sweep = now + _SWEEP_SECONDS
        engine, recorder = self.shadow.engine, self._recorder
        made = engine.step(now, 0) if recorder is None else recorder.step(engine, now, 0)
        for action in made:
            if isinstance(action, Report):
                _log.error(action.message)


@asynccontextmanager
async def shadow_cluster(
    connection: Connection,
    engine: Engine,
    recorder: Recorder | None = None,
    clock: Callable[[], float] = time,
) -> AsyncIterator[Shadow]:
    """Follows a cluster for as long as the context lasts; it is known when the context begins.

    With a recorder, all events and judgements are recorded.
    """
    shadow = Shadow(engine, perf_counter)
    follower = ShadowFollower(shadow, recorder, clock)

    # The client refuses to write, whatever asks it to.
    pause = _PAUSE_SECONDS if recorder is None else 0.0
    async with Api(connection, may_write=lambda: False, watch_pause=pause) as api:
        feed = Feed(follower.take_in, recorder)
        reflectors = make_reflectors(api, engine, feed, keep_raw=lambda kind: recorder is not None)
        tasks = [asyncio.create_task(each.run()) for each in reflectors]
        try:
            for reflector in reflectors:
                await reflector.synced.wait()
            freeze_objects()
            cluster = engine.cluster
            _log.info("The cluster is known", nodes=len(cluster.nodes), pods=len(cluster.pods))
            yield follower.shadow
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
