"""Runs beside another scheduler: watches, decides what it decides, writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import perf_counter, time

from mooring.client.api import Api
from mooring.client.connection import Connection
from mooring.engine import Engine
from mooring.engine.events import Event
from mooring.world.shadow_judge import Shadow

from . import logs
from .scheduler import Feed
from .worker import make_reflectors

_log = logs.make_log(__name__)


@asynccontextmanager
async def shadow_cluster(
    connection: Connection, engine: Engine, clock: Callable[[], float] = time
) -> AsyncIterator[Shadow]:
    """Follows a cluster for as long as the context lasts; it is known when the context begins."""
    shadow = Shadow(engine, perf_counter)

    def take_in(event: Event) -> None:
        shadow.handle(event, clock())

    # The client refuses to write, whatever asks it to.
    async with Api(connection, may_write=lambda: False) as api:
        reflectors = make_reflectors(api, engine, Feed(take_in), keep_raw=lambda kind: False)
        tasks = [asyncio.create_task(each.run()) for each in reflectors]
        try:
            for reflector in reflectors:
                await reflector.synced.wait()
            cluster = engine.cluster
            _log.info("The cluster is known", nodes=len(cluster.nodes), pods=len(cluster.pods))
            yield shadow
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
