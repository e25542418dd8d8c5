"""A whole cluster in one process: API server, hollow nodes, controllers and the scheduler."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from moorage.client.api import Api as HttpApi, Requests
from moorage.client.credentials import NamedScheduler, connect
from moorage.documents.errors import DecodeError, InputError
from moorage.documents.yaml_text import read_document
from moorage.embedded.adoption import Copied, adopt_all
from moorage.embedded.controllers.runner import run_controllers
from moorage.embedded.hollow.hollow_nodes import HollowNodes
from moorage.embedded.hollow.node_shapes import ShapeFile, make, make_nodes
from moorage.embedded.hollow.pod_life import HollowSettings
from moorage.embedded.server import Server, ServerSettings, serve
from moorage.engine import Engine
from moorage.web import PageAccess
from moorage.web.engine_reads import in_slices
from moorage.web.page import PREFIX

from .connections import ConnectionLimits, accept_connections
from .direct_api import DirectApi
from .endpoints import Content, build_routes
from .main_thread import ProcessChecks, content
from .metrics import Metrics
from .observations import Observations
from .worker import Worker

_NAME = "kubeconfig"

_LOOPBACK = "127.0.0.1"

_IDENTITY = "moorage-up"


class SchedulerAccess(StrEnum):
    """How the scheduler reaches the API server, if there is a scheduler."""

    DIRECT = "direct"
    HTTP = "http"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class UpSettings:
    """The settings of a cluster."""

    server: ServerSettings = field(default_factory=ServerSettings)
    nodes: ShapeFile
    #: Objects that are made before the nodes, each with the place where it was written.
    manifests: tuple[tuple[str, dict[str, Any]], ...] = ()
    #: Reads the objects of another cluster that this one is to be a copy of.
    read_copies: Callable[[], Awaitable[list[Copied]]] | None = None
    #: Whether the copy has secrets, values of ConfigMaps and environments, too.
    with_values: bool = False
    hollow: HollowSettings = field(default_factory=HollowSettings)
    scheduler_access: SchedulerAccess = SchedulerAccess.DIRECT
    kubeconfig: Path | None = None
    #: The flags that give other commands the configuration of this scheduler.
    scheduler_flags: str = ""


def _compare_nothing() -> None:
    """Does nothing: without a scheduler there is no cache to compare."""


@dataclass(frozen=True)
class Ready:
    """The addresses and files of a running cluster."""

    server: str
    kubeconfig: Path
    nodes: int
    #: Where the scheduler serves its metrics, and where a browser is let in to its page, once.
    #: Both are empty without a scheduler.
    endpoints: str = ""
    page: str = ""
    #: Compares the scheduler's picture of the cluster with the API server, and logs what differs.
    compare: Callable[[], None] = _compare_nothing
    #: What became of the objects of another cluster.
    notes: tuple[str, ...] = ()


async def up(
    settings: UpSettings,
    engine: Engine,
    observations: Observations,
    ready: Callable[[Ready], Awaitable[None]],
    stopping: asyncio.Event,
) -> None:
    """Runs a cluster until it is stopped.

    Once it is ready, `ready` runs beside it; an exception of `ready` ends both.
    """
    async with AsyncExitStack() as stack:
        copies = [] if settings.read_copies is None else await settings.read_copies()
        server = await serve(settings.server)
        stack.push_async_callback(server.stop)
        notes = _adopt(server, copies, settings)
        for place, item in settings.manifests:
            make(server.api, item, place)
        make_nodes(server.api, settings.nodes.shapes, settings.nodes.source)
        path = stack.enter_context(write_kubeconfig(server.kubeconfig, settings.kubeconfig))
        hollow = HollowNodes(server.api, settings.hollow)
        scheduling, endpoints, page = None, "", ""
        if settings.scheduler_access is not SchedulerAccess.NONE:
            api = await stack.enter_async_context(_connect(server, settings.scheduler_access, path))
            scheduling = Worker(lambda _: nullcontext(api), engine, _IDENTITY)
            served = content(
                engine, Metrics(engine, observations), scheduling, in_slices, _checks(stopping)
            )
            # Users of the cluster may see its scheduler, by the same token.
            page_access = PageAccess(settings.server.token)
            endpoints = await stack.enter_async_context(loopback_site(served, page_access))
            page = f"{endpoints}{PREFIX}{page_access.path}"
            _name_scheduler(path, server, NamedScheduler(endpoints, settings.scheduler_flags))

        async def tell() -> None:
            await hollow.known.wait()
            compare = _compare_nothing
            if scheduling is not None:
                await asyncio.shield(asyncio.wrap_future(scheduling.known))
                scheduling.lead(lambda: True)
                compare = scheduling.compare
            count = len(hollow.kubelets.hosts)
            await ready(Ready(server.url, path, count, endpoints, page, compare, notes))

        await _run_parts([hollow.run(), run_controllers(server.api), tell()], scheduling, stopping)


def _adopt(server: Server, copies: list[Copied], settings: UpSettings) -> tuple[str, ...]:
    """Takes over the objects of another cluster; returns notes for the user."""
    if settings.read_copies is None:
        return ()
    report = adopt_all(server.api, copies, with_values=settings.with_values)
    # They are large, and not needed any more.
    copies.clear()
    return tuple(report.describe())


def _checks(stopping: asyncio.Event) -> ProcessChecks:
    return ProcessChecks(
        ready={"shutdown": lambda: "it is shutting down" if stopping.is_set() else None}
    )


async def _run_parts(
    parts: list[Coroutine[Any, Any, None]], scheduling: Worker | None, stopping: asyncio.Event
) -> None:
    """Runs all parts until they are stopped; the failure of one ends all."""
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
    """Schedules until it is stopped, and then finishes what was decided."""
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
async def _connect(
    server: Server, access: SchedulerAccess, kubeconfig: Path
) -> AsyncIterator[Requests]:
    """Yields the connection of the scheduler to the API server."""
    if access is SchedulerAccess.DIRECT:
        yield DirectApi(server.api)
        return
    async with HttpApi(await connect(str(kubeconfig))) as api:
        yield api


class KubeconfigError(InputError):
    """A file that must not be overwritten. The text names it."""


@contextmanager
def write_kubeconfig(content: Mapping[str, Any], wanted: Path | None) -> Iterator[Path]:
    """Writes a file that only its owner can read. A temporary file is removed at the end."""
    text = yaml.safe_dump(dict(content), sort_keys=False)
    if wanted is not None:
        _refuse_other_kubeconfigs(wanted, content["current-context"])
        _write(wanted, text)
        yield wanted
        return
    # A runtime folder is the user's own, and gone after the session.
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    place = runtime if runtime and os.access(runtime, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="moorage-", dir=place) as folder:
        path = Path(folder, _NAME)
        _write(path, text)
        yield path


def _name_scheduler(path: Path, server: Server, scheduler: NamedScheduler) -> None:
    """Writes into a kubeconfig where the scheduler of the cluster answers."""
    content = server.kubeconfig
    content["clusters"][0]["cluster"]["extensions"] = [scheduler.encode()]
    _write(path, yaml.safe_dump(content, sort_keys=False))


def _refuse_other_kubeconfigs(path: Path, context: str) -> None:
    """Refuses to overwrite a kubeconfig of another cluster."""
    if not path.exists():
        return
    try:
        known = read_document(path.read_bytes()) or {}
        contexts = [each["name"] for each in known.get("contexts") or ()]
    except (DecodeError, AttributeError, KeyError, TypeError):
        raise KubeconfigError(
            f"{path}: exists and is not a kubeconfig that Moorage wrote; name another file"
        ) from None
    if contexts not in ([], [context]):
        others = ", ".join(str(each) for each in contexts if each != context)
        raise KubeconfigError(
            f"{path}: has contexts of other clusters ({others}); name another file"
        )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A new file beside it, so that the token is never in a file that others may read.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    Path(name).replace(path)


@asynccontextmanager
async def loopback_site(content: Content, access: PageAccess) -> AsyncIterator[str]:
    """Serves on a free port of this machine while the context lasts; yields the address.

    It uses plain HTTP. No browser trusts a certificate that was made a moment ago, and a try-out
    must not teach anybody to click warnings away. Only the administrator can read what goes over
    loopback, and browsers treat it like HTTPS. The cookie that lets a browser in has no `secure`
    flag, because not all browsers keep such a cookie over HTTP; scripts cannot read it, and other
    sites cannot make browsers send it.
    """
    if content.page is None:
        raise ValueError("there is no page to serve")
    app = build_routes(content, access.guard(content.page, PREFIX))
    async with accept_connections(app, (_LOOPBACK, 0), ConnectionLimits()) as port:
        yield f"http://{_LOOPBACK}:{port}"
