"""A whole cluster in one process: API server, hollow nodes, controllers and the scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from mooring.client.api import Api as HttpApi
from mooring.client.api import Requests
from mooring.client.credentials import connect
from mooring.embedded.controllers.runner import run_controllers
from mooring.embedded.hollow.hollow_nodes import HollowNodes
from mooring.embedded.hollow.node_shapes import ShapeFile, make, make_nodes
from mooring.embedded.hollow.pod_life import HollowSettings
from mooring.embedded.server import Server, ServerSettings, serve
from mooring.engine import Engine
from mooring.web import Entry
from mooring.web.page import PREFIX
from mooring.web.turns import in_slices

from .direct import DirectApi
from .kubeconfigs import write_kubeconfig
from .loopback import loopback_site
from .metrics import Metrics
from .observations import Observations
from .run import Checks, content
from .worker import Worker

_IDENTITY = "mooring-up"


class Reach(StrEnum):
    """How the scheduler talks to the API server, if there is one to talk."""

    DIRECT = "direct"
    HTTP = "http"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class UpSettings:
    """What is asked of a cluster."""

    server: ServerSettings = field(default_factory=ServerSettings)
    nodes: ShapeFile
    #: Objects that are made before the nodes, each with the place where it was written.
    manifests: tuple[tuple[str, dict[str, Any]], ...] = ()
    hollow: HollowSettings = field(default_factory=HollowSettings)
    reach: Reach = Reach.DIRECT
    kubeconfig: Path | None = None


@dataclass(frozen=True)
class Ready:
    """Where the parts of a running cluster are found."""

    server: str
    kubeconfig: Path
    nodes: int
    #: Where the scheduler serves its metrics, and where a browser is let in to its page, once.
    #: Both are empty without a scheduler.
    endpoints: str = ""
    page: str = ""


async def up(
    settings: UpSettings,
    engine: Engine,
    observations: Observations,
    ready: Callable[[Ready], Awaitable[None]],
    stopping: asyncio.Event,
) -> None:
    """Runs a cluster until it is to stop.

    Once it is ready, `ready` goes on beside it; what that raises is the end of both.
    """
    async with AsyncExitStack() as stack:
        server = await serve(settings.server)
        stack.push_async_callback(server.stop)
        for place, item in settings.manifests:
            make(server.api, item, place)
        make_nodes(server.api, settings.nodes.shapes, settings.nodes.source)
        path = stack.enter_context(write_kubeconfig(server.kubeconfig, settings.kubeconfig))
        hollow = HollowNodes(server.api, settings.hollow)
        scheduling, endpoints, page = None, "", ""
        if settings.reach is not Reach.NONE:
            api = await stack.enter_async_context(_requests(server, settings.reach, path))
            scheduling = Worker(lambda _: nullcontext(api), engine, _IDENTITY)
            told = content(
                engine, Metrics(engine, observations), scheduling, in_slices, _checks(stopping)
            )
            # Whoever may use the cluster may see its scheduler, by the same token.
            entry = Entry(settings.server.token)
            endpoints = await stack.enter_async_context(loopback_site(told, entry))
            page = f"{endpoints}{PREFIX}{entry.path}"

        async def tell() -> None:
            await hollow.known.wait()
            if scheduling is not None:
                await asyncio.shield(asyncio.wrap_future(scheduling.known))
                scheduling.lead(lambda: True)
            await ready(Ready(server.url, path, len(hollow.kubelets.hosts), endpoints, page))

        await _live([hollow.run(), run_controllers(server.api), tell()], scheduling, stopping)


def _checks(stopping: asyncio.Event) -> Checks:
    return Checks(ready={"shutdown": lambda: "it is shutting down" if stopping.is_set() else None})


async def _live(
    parts: list[Coroutine[Any, Any, None]], scheduling: Worker | None, stopping: asyncio.Event
) -> None:
    """Runs all parts until they are to stop; the failure of one is that of all."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part) for part in parts]
            if scheduling is None:
                await stopping.wait()
            else:
                await _schedule(scheduling, stopping)
            for task in tasks:
                task.cancel()
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures


async def _schedule(worker: Worker, stopping: asyncio.Event) -> None:
    """Schedules until it is to stop; what was decided by then is finished."""
    deciding = asyncio.create_task(worker.run())
    stop = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((deciding, stop), return_when=asyncio.FIRST_COMPLETED)
        worker.stop()
        await deciding
    finally:
        for task in (deciding, stop):
            task.cancel()
        await asyncio.gather(deciding, stop, return_exceptions=True)


@asynccontextmanager
async def _requests(server: Server, reach: Reach, kubeconfig: Path) -> AsyncIterator[Requests]:
    """How the scheduler asks the API server."""
    if reach is Reach.DIRECT:
        yield DirectApi(server.api)
        return
    async with HttpApi(await connect(str(kubeconfig))) as api:
        yield api
