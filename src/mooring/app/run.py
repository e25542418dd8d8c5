"""The whole of a running scheduler: connection, watches, loop, leadership, signals."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from mooring.client.api import Api
from mooring.client.connection import Connection
from mooring.client.reflector import Reflector
from mooring.client.requests import Requests
from mooring.client.resources import RESOURCES, Resource
from mooring.engine import Engine
from mooring.objects.decode import KINDS, Reader, reader
from mooring.web import Page

from . import logs
from .authorization import AuthorizationSettings, Authorizer
from .compare import compare
from .configz import configz
from .endpoints import Content, serving
from .feed import Feed
from .health import ping
from .leadership import Leadership
from .metrics import Metrics
from .observations import Observations
from .perform import Performer
from .pod_resources import pod_resources
from .recorded import Setup
from .recording import Recorder
from .scheduler import Scheduler
from .segments import RecordSettings
from .tls_site import ServingSettings

_log = logs.named(__name__)

# How long what was decided may take to be carried out after we are asked to stop.
_DRAIN_SECONDS = 10.0

#: The kinds without which a pod could be placed or evicted where it must not be. All others, custom
#: ones among them, count as empty while the API server does not have or refuses them: then pods
#: that need them wait, or are spread less well.
ESSENTIAL = frozenset(
    (
        "Pod",
        "Node",
        "Namespace",
        "PodDisruptionBudget",
        "CSIDriver",
        "CSINode",
        "VolumeAttachment",
    )
)

# Exit codes.
_STOPPED, _LOST = 0, 1


@dataclass(frozen=True)
class Record:
    """Where to write down what the scheduler sees and decides."""

    path: Path
    setup: Setup
    settings: RecordSettings = field(default_factory=RecordSettings)

    def begin(self) -> Recorder:
        return Recorder(self.path, self.setup, self.settings)


@dataclass(frozen=True)
class Settings:
    """What is asked of a running scheduler, its configuration aside."""

    identity: str
    #: Requests a second at most, and at once; 0 asks as fast as the API server answers.
    qps: float = 0.0
    burst: int = 0
    #: None serves no endpoints.
    serving: ServingSettings | None = None
    authorization: AuthorizationSettings = field(default_factory=AuthorizationSettings)
    #: None records nothing.
    record: Record | None = None


async def schedule(
    connection: Connection, engine: Engine, observations: Observations, settings: Settings
) -> int:
    """Runs an engine, which is observed, until told to stop or until its lead is lost.

    Returns the exit code.
    """
    metrics = Metrics(engine, observations)
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(
            Api(connection, qps=settings.qps, burst=settings.burst, observe=metrics.requested)
        )
        leadership = None
        election = engine.configuration.leader_election
        if election.leader_elect:
            # Renewals must not wait behind other requests.
            own = Api(connection, timeout=election.renew_deadline.seconds)
            leadership = Leadership(
                await stack.enter_async_context(own),
                election,
                settings.identity,
                on_change=lambda leads, _: metrics.leads(election.resource_name, leads),
            )
        recorder = None
        if settings.record is not None:
            recorder = settings.record.begin()
            stack.callback(recorder.close)
        running = Running(api, engine, settings.identity, leadership, recorder)
        if settings.serving is not None:
            authorizer = Authorizer(api, settings.authorization)
            told = content(engine, metrics, running)
            await stack.enter_async_context(serving(settings.serving, told, authorizer))
        _on_signals(running)
        return await running.run()


def content(engine: Engine, metrics: Metrics, running: Running) -> Content:
    """What the endpoints of a running scheduler tell."""
    metrics.follow(running)
    return Content(
        metrics=metrics.text,
        resources=lambda: pod_resources(engine),
        configuration=lambda: configz(engine.configuration),
        readyz={
            "ping": ping,
            "informer-sync": lambda: running.unsynced,
            "shutdown": lambda: "it is shutting down" if running.is_stopping else None,
        },
        page=Page(engine),
    )


def _on_signals(running: Running) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.stop)
    loop.add_signal_handler(signal.SIGUSR2, running.compare)


class Running:
    """A scheduler at work."""

    def __init__(
        self,
        api: Requests,
        engine: Engine,
        identity: str,
        leadership: Leadership | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self._api = api
        self._engine = engine
        self._identity = identity
        self._leadership = leadership
        self.scheduler = Scheduler(engine, recorder=recorder)
        self._feed = Feed(self.scheduler.tell, recorder)
        self._reflectors = _reflectors(api, engine, self._feed, recorder)
        self._stopping = asyncio.Event()
        #: Set once it schedules.
        self.leads = asyncio.Event()
        self._performer: Performer | None = None
        self._comparison: asyncio.Task[None] | None = None

    @property
    def unsynced(self) -> str | None:
        """What has not been listed yet."""
        missing = [each.kind for each in self._reflectors if not each.synced.is_set()]
        return f"not listed yet: {', '.join(missing)}" if missing else None

    @property
    def absent(self) -> list[str]:
        """The kinds that count as empty because the API server does not have or refuses them."""
        return [each.kind for each in self._reflectors if each.absence]

    @property
    def left_out(self) -> Mapping[str, int]:
        """How often an object could not be read, by kind."""
        return self._feed.left_out

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Asks for an orderly end."""
        self._stopping.set()

    def compare(self) -> None:
        """Has the picture of the cluster compared with the API server's."""
        if self._comparison is None or self._comparison.done():
            self._comparison = asyncio.create_task(compare(self._api, self._engine.cluster))

    async def run(self) -> int:
        """Runs until stopped, or until leadership is lost; returns the exit code."""
        tasks = [asyncio.create_task(each.run()) for each in self._reflectors]
        tasks.append(asyncio.create_task(self.scheduler.run()))
        leading = asyncio.create_task(self._serve())
        tasks.append(leading)
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            done, _ = await asyncio.wait([*tasks, stopping], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopping}:
                # Nothing but leadership ends by itself: what else ends has failed, and says why.
                task.result()
                return _LOST
            # Nobody renews the lease while it is given up.
            leading.cancel()
            await self._leave()
            return _STOPPED
        finally:
            for task in [*tasks, stopping]:
                task.cancel()
            await asyncio.gather(*tasks, stopping, return_exceptions=True)

    async def _serve(self) -> None:
        """Waits until the cluster is known, then leads; returns when leadership is lost."""
        for reflector in self._reflectors:
            await reflector.synced.wait()
        await self.scheduler.caught_up()
        # What is known by now stays: looking for garbage among it only takes time.
        gc.collect()
        gc.freeze()
        cluster = self._engine.cluster
        _log.info("The cluster is known", nodes=len(cluster.nodes), pods=len(cluster.pods))
        if self._leadership is None:
            self._lead(lambda: True)
            await asyncio.Event().wait()
            return
        await self._leadership.campaign()
        self._lead(self._leadership.may_act)
        await self._leadership.hold()
        _log.error("Leadership is lost", leader=self._leadership.leader)
        self.scheduler.rest()
        await self._stop_performing()

    def _lead(self, may_act: Callable[[], bool]) -> None:
        _log.info("This scheduler leads", identity=self._identity)
        self._performer = Performer(
            self._api, self.scheduler, may_act=may_act, instance=self._identity
        )
        self.scheduler.lead(self._performer)
        self.leads.set()

    async def _leave(self) -> None:
        """Finishes what was decided, then makes way for another."""
        _log.info("Stopping")
        self.scheduler.rest()
        if self._performer is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await self._performer.drain()
        await self._stop_performing()
        if self._leadership is not None:
            await self._leadership.release()

    async def _stop_performing(self) -> None:
        if self._performer is not None:
            await self._performer.stop()


def _reflectors(
    api: Requests, engine: Engine, feed: Feed, recorder: Recorder | None
) -> list[Reflector]:
    """One for each kind that scheduling reads, and for each that a plugin asked for."""
    wanted: dict[Resource, Reader] = {RESOURCES[kind]: reader(kind) for kind in sorted(KINDS)}
    for kind in engine.handles.kinds:
        resource = Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced)
        wanted[resource] = reader(kind)
    keep_raw = recorder is not None
    return [
        Reflector(
            api,
            resource,
            feed,
            decode=each,
            keep_raw=keep_raw,
            # A custom kind may have the name of one of Kubernetes' own.
            essential=RESOURCES.get(resource.kind) == resource and resource.kind in ESSENTIAL,
        )
        for resource, each in wanted.items()
    ]
