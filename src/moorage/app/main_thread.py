"""A running scheduler: two threads and their work.

The deciding thread (`worker`) follows the cluster, decides and writes. The main thread does what
must go on during a long decision: it renews the lease, answers at the endpoints and handles
signals. They share the engine, which the main thread reads in steps that run on the other thread,
and the term of leadership, which is checked before every write.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import uvloop

from moorage.client.api import Api, Requests
from moorage.client.connection import Connection
from moorage.config import LeaderElection
from moorage.engine import Engine
from moorage.record.format import Setup
from moorage.record.recorder import Recorder
from moorage.record.segments import RecordSettings
from moorage.web import StatusPage
from moorage.web.engine_reads import Read

from . import logs
from .authorization import MOST_AT_ONCE, AuthorizationSettings, Authorizer
from .endpoints import Check, Content, configz, make_pages, ping, serve_endpoints
from .https_site import ServingSettings
from .leadership import Leadership
from .loop_thread import HUNG_SECONDS, LoopThread, exit_now, on_signals, wait_at_most
from .metric_text import pod_resources
from .metrics import Metrics
from .observations import Observations
from .worker import DRAIN_SECONDS, MayWrite, Worker

_log = logs.make_log(__name__)

# How long the thread that decides may take to end, beyond what it may take to write.
_GRACE_SECONDS = 5.0
# Made-up tokens are reviewed at this pace at most, however many come.
_REVIEWS_PER_SECOND, _REVIEWS_AT_ONCE = 20, 40
# A write that has not been answered by then is looked into.
_LONGEST_WRITE_SECONDS, _LONGEST_CONNECT_SECONDS = 30.0, 10.0

# Exit codes.
_STOPPED, _LOST = 0, 1

#: Opens the API server: once for each thread, because a connection belongs to one loop.
Connect = Callable[[], Awaitable[Connection]]


@dataclass(frozen=True)
class Record:
    """Where to record what the scheduler sees and decides."""

    path: Path
    setup: Setup
    settings: RecordSettings = field(default_factory=RecordSettings)

    def begin(self) -> Recorder:
        return Recorder(self.path, self.setup, self.settings)


@dataclass(frozen=True)
class RunSettings:
    """The settings of a running scheduler, besides its configuration."""

    identity: str
    #: Requests a second at most, and at once; 0 goes by `clientConnection` of the configuration.
    qps: float = 0.0
    burst: int = 0
    #: The command line, as /flagz tells it: flags with their values.
    flags: Mapping[str, object] = field(default_factory=dict)
    #: None serves no endpoints.
    serving: ServingSettings | None = None
    authorization: AuthorizationSettings = field(default_factory=AuthorizationSettings)
    #: None records nothing.
    record: Record | None = None
    #: A decision that takes longer counts as hung: liveness fails, and the lease runs out.
    hung_seconds: float = HUNG_SECONDS


def schedule(
    connect: Connect, engine: Engine, observations: Observations, settings: RunSettings
) -> int:
    """Runs an observed engine until a signal stops it or its lease is lost.

    Returns the exit code if all threads have ended; else it ends the process with that code.
    """
    running = _MainThread(connect, engine, observations, settings)
    code = uvloop.run(running.run())
    if running.is_deciding:
        exit_now(code)
    return code


class _MainThread:
    """The work of the main thread."""

    def __init__(
        self, connect: Connect, engine: Engine, observations: Observations, settings: RunSettings
    ) -> None:
        self._connect = connect
        self._engine = engine
        self._settings = settings
        self._election = engine.configuration.leader_election
        self._recorder = None if settings.record is None else settings.record.begin()
        self._worker = Worker(self._open_api, engine, settings.identity, self._recorder)
        self._thread = LoopThread("deciding", self._decide)
        self._metrics = Metrics(engine, observations, self._thread.read, self._thread.stall_seconds)
        self._stopping = asyncio.Event()

    @property
    def is_deciding(self) -> bool:
        return self._thread.is_running

    async def run(self) -> int:
        """Runs to the end; returns the exit code."""
        on_signals(signal.SIGTERM, signal.SIGINT, call=self._stopping.set)
        on_signals(signal.SIGUSR2, call=partial(self._thread.call, self._worker.compare))
        async with AsyncExitStack() as stack:
            connection = await self._connect()
            leadership = None
            if self._election.leader_elect:
                leadership = self._leadership(
                    await stack.enter_async_context(self._make_client(connection))
                )
            if self._settings.serving is not None:
                # Before the other thread starts, since it reads the engine.
                served = content(
                    self._engine, self._metrics, self._worker, self._thread.read, self._checks()
                )
                reviewing = self._make_client(
                    connection, _REVIEWS_PER_SECOND, _REVIEWS_AT_ONCE, MOST_AT_ONCE
                )
                api = await stack.enter_async_context(reviewing)
                authorizer = Authorizer(api, self._settings.authorization)
                await stack.enter_async_context(
                    serve_endpoints(self._settings.serving, served, authorizer)
                )
            self._thread.start()
            return await self._attend(leadership)

    async def _decide(self) -> None:
        """The work of the deciding thread."""
        try:
            await self._worker.run()
        finally:
            if self._recorder is not None:
                self._recorder.close()

    @asynccontextmanager
    async def _open_api(self, may_write: MayWrite) -> AsyncIterator[Requests]:
        settings, seconds = self._settings, _write_seconds(self._election)
        file = self._engine.configuration.client_connection
        async with Api(
            await self._connect(),
            qps=settings.qps or file.qps,
            burst=settings.burst or file.burst,
            write_timeout=seconds.answer,
            connect_timeout=seconds.connect,
            observe=self._metrics.count_request,
            may_write=may_write,
        ) as api:
            yield api

    def _make_client(
        self, connection: Connection, qps: float = 0, burst: int = 0, most: int = 4
    ) -> AbstractAsyncContextManager[Api]:
        """Makes a client for the main thread that does not wait behind bindings."""

        def observe(*request: object) -> None:
            self._thread.call(self._metrics.count_request, *request)

        return Api(
            connection,
            qps=qps,
            burst=burst,
            most_connections=most,
            timeout=self._election.renew_deadline.seconds,
            observe=observe,
        )

    def _leadership(self, api: Api) -> Leadership:
        name = self._election.resource_name
        return Leadership(
            api,
            self._election,
            self._settings.identity,
            on_change=lambda leads, _: self._metrics.note_leading(name, leads),
            is_well=lambda: self._hung() is None,
        )

    def _hung(self) -> str | None:
        seconds = self._thread.stall_seconds()
        if seconds < self._settings.hung_seconds:
            return None
        return f"a decision has not ended for {seconds:.0f} s"

    def _checks(self) -> ProcessChecks:
        return ProcessChecks(
            live={"ping": ping, "deciding": self._hung},
            ready={"shutdown": lambda: "it is shutting down" if self._stopping.is_set() else None},
            texts=make_pages(self._engine.configuration.gates, self._settings.flags),
        )

    async def _attend(self, leadership: Leadership | None) -> int:
        """Leads until a signal stops it or the lease is lost."""
        ended = asyncio.create_task(self._thread.wait())
        leading = asyncio.create_task(self._lead(leadership))
        stopping = asyncio.create_task(self._stopping.wait())
        tasks = (ended, leading, stopping)
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopping}:
                # Only a lost lead ends one of these by itself: what else ends has failed.
                task.result()
            lost = stopping not in done
            await self._end_deciding(lost=lost)
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        # Nobody renews the lease any more.
        if leadership is not None:
            await leadership.release()
        return _LOST if lost else _STOPPED

    async def _lead(self, leadership: Leadership | None) -> None:
        """Waits until the cluster is known, then leads; returns when the lease is lost."""
        await asyncio.shield(asyncio.wrap_future(self._worker.known))
        if leadership is None:
            self._thread.call(self._worker.lead, lambda: True)
            await asyncio.Event().wait()
            return
        term = await leadership.await_election()
        self._thread.call(self._worker.lead, term.holds)
        await leadership.hold()
        _log.error("Leadership is lost", leader=leadership.leader, problem=leadership.problem)

    async def _end_deciding(self, *, lost: bool) -> None:
        """Ends the deciding thread. Decisions are carried out, unless the lease is lost."""
        _log.info("Stopping")
        self._thread.call(self._worker.quit if lost else self._worker.stop)
        seconds = _GRACE_SECONDS if lost else DRAIN_SECONDS + _GRACE_SECONDS
        if not await wait_at_most(self._thread, seconds):
            _log.error(
                "A decision does not end: the process exits without it",
                seconds=round(self._thread.stall_seconds()),
            )


@dataclass(frozen=True, slots=True)
class _Seconds:
    connect: float
    answer: float


def _write_seconds(election: LeaderElection) -> _Seconds:
    """Returns how long a write may take until it is sent, and until it is answered.

    A leader checks its term before a write, and acts until `renew_deadline` after its last renewal.
    So a write that is sent within the rest of the lease is sent before another replica can lead.
    """
    if not election.leader_elect:
        return _Seconds(_LONGEST_CONNECT_SECONDS, _LONGEST_WRITE_SECONDS)
    deadline = election.renew_deadline.seconds
    rest = election.lease_duration.seconds - deadline
    return _Seconds(min(rest, _LONGEST_CONNECT_SECONDS), min(deadline, _LONGEST_WRITE_SECONDS))


@dataclass(frozen=True, slots=True)
class ProcessChecks:
    """The health checks of the process, by name, and its pages about itself."""

    live: dict[str, Check] = field(default_factory=dict)
    ready: dict[str, Check] = field(default_factory=dict)
    #: Pages of plain text about the process, by path.
    texts: dict[str, Callable[[], str]] = field(default_factory=dict)


def content(
    engine: Engine, metrics: Metrics, worker: Worker, read: Read, checks: ProcessChecks
) -> Content:
    """Makes the content of the endpoints of a running scheduler."""
    metrics.follow(worker)
    return Content(
        metrics=metrics.text,
        resources=lambda: pod_resources(engine, read),
        configuration=lambda: configz(engine.configuration),
        healthz=checks.live,
        livez=checks.live,
        readyz={
            "ping": ping,
            "informer-sync": lambda: worker.unsynced,
            # Objects are taken in as they come, so nothing is left to wait for.
            "sched-handler-sync": lambda: worker.unsynced,
            **checks.ready,
        },
        texts=checks.texts,
        page=StatusPage(engine, read=read),
    )
