"""The deciding half of a scheduler: it follows the cluster, decides, and writes.

All of it runs on one loop. Only that loop may call `stop`, `quit` and `lead`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress

from moorage.client.api import SMALL_PATH, Requests
from moorage.client.api_errors import Unreachable
from moorage.client.pacing import FIRST_CONNECTIONS
from moorage.client.reflector import Reflector
from moorage.engine import Engine
from moorage.framework.series import Series
from moorage.objects.kinds import KINDS, READ_KINDS, KnownKind
from moorage.objects.meta import ObjectKind
from moorage.record.recorder import Recorder

from . import logs
from .cache_comparison import AssumedPods, compare
from .extender_calls import ExtenderCalls
from .performer import Performer
from .python_garbage import freeze_objects
from .scheduler import Feed, Scheduler

# Less than the time after which the client closes an unused connection.
_KEEP_EVERY_SECONDS = 20.0

_log = logs.make_log(__name__)

#: How long what was decided may take to be carried out after we are asked to stop.
DRAIN_SECONDS = 10.0

#: Whether writes are allowed: we lead, and no other replica can yet.
MayWrite = Callable[[], bool]


class Worker:
    """Follows a cluster, and schedules it from the call of `lead` on."""

    def __init__(
        self,
        connect: Callable[[MayWrite], AbstractAsyncContextManager[Requests]],
        engine: Engine,
        identity: str,
        recorder: Recorder | None = None,
    ) -> None:
        """`connect` opens the API server; its writes ask the function that it is given.

        Raises ExtenderUnusable if the certificates of an extender cannot be read.
        """
        self._connect = connect
        self._engine = engine
        self._identity = identity
        self._recorder = recorder
        self._scheduler = Scheduler(engine, recorder=recorder)
        configuration = engine.configuration
        self._extenders = ExtenderCalls(configuration.extenders, configuration.extender_concurrency)
        manifests = self._extenders.manifests if self._extenders else None
        self._feed = Feed(self._scheduler.tell, recorder, manifests)
        self._api: Requests | None = None
        self._reflectors: list[Reflector] | None = None
        self._leads: MayWrite | None = None
        self._performer: Performer | None = None
        self._comparison: asyncio.Task[None] | None = None
        #: Keeps connections open while this scheduler leads.
        self._warming: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._is_to_drain = True
        #: Done once the cluster is known; for all threads.
        self.known: Future[None] = Future()

    @property
    def unsynced(self) -> str | None:
        """The kinds that have not been listed yet. All threads may ask."""
        if self._reflectors is None:
            return "not connected yet"
        missing = [each.kind for each in self._reflectors if not each.synced.is_set()]
        return f"not listed yet: {', '.join(missing)}" if missing else None

    @property
    def absent(self) -> list[str]:
        """The kinds that count as empty because the API server does not have or refuses them."""
        reflectors = self._reflectors or ()
        # A server has some kinds in one of several versions.
        present = {each.resource for each in reflectors if not each.absence}
        absent = (each for each in reflectors if each.resource not in present)
        return list({each.resource: each.kind for each in absent}.values())

    @property
    def left_out(self) -> Mapping[str, int]:
        """How often an object could not be read, by kind."""
        return self._feed.left_out

    @property
    def dropped_events(self) -> int:
        """How many events were not written because there were too many."""
        return 0 if self._performer is None else self._performer.dropped_events

    @property
    def claim_creations(self) -> Mapping[str, int]:
        """How many claims for extended resources were made or failed, by status."""
        return {} if self._performer is None else self._performer.claim_creations

    @property
    def extender_series(self) -> Iterable[Series]:
        """The figures of calls of extenders for the metrics."""
        return self._extenders.series

    def may_write(self) -> bool:
        return self._leads is not None and self._leads()

    def lead(self, leads: MayWrite) -> None:
        """Begins to decide. Once `leads` returns False, decisions are dropped."""
        if self._api is None or self._stopping.is_set():
            return
        _log.info("This scheduler leads", identity=self._identity)
        self._leads = leads
        self._performer = Performer(
            self._api,
            self._scheduler,
            may_act=leads,
            instance=self._identity,
            extenders=self._extenders,
        )
        self._scheduler.lead(self._performer)
        if self._warming is None:
            self._warming = asyncio.create_task(keep_connections(self._api))

    def stop(self) -> None:
        """Asks for an orderly end: decisions are carried out."""
        self._stopping.set()

    def quit(self) -> None:
        """Asks for an end at once: nothing more is written."""
        self._is_to_drain = False
        self._stopping.set()

    def compare(self) -> None:
        """Compares the cache of the cluster with the API server."""
        if self._api is not None and (self._comparison is None or self._comparison.done()):
            self._comparison = asyncio.create_task(compare(self._api, self._engine.cluster))

    async def run(self) -> None:
        """Runs until stopped; raises the error that ends it."""
        async with self._connect(self.may_write) as api, self._extenders:
            self._api = api
            wanted = self._extenders.manifests.kinds if self._extenders else ()
            reflectors = make_reflectors(
                api,
                self._engine,
                self._feed,
                keep_raw=lambda kind: self._recorder is not None or kind in wanted,
            )
            self._reflectors = reflectors
            tasks = [
                asyncio.create_task(each)
                for each in (
                    *(reflector.run() for reflector in reflectors),
                    self._scheduler.run(),
                    AssumedPods(api, self._engine, self._scheduler.tell).run(),
                    self._learn(reflectors),
                    self._wait_to_stop(),
                )
            ]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                await self._leave()
            finally:
                tasks += [each for each in (self._comparison, self._warming) if each is not None]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _learn(self, reflectors: list[Reflector]) -> None:
        """Waits until the cluster is known, and logs it."""
        for reflector in reflectors:
            await reflector.synced.wait()
        await self._scheduler.catch_up()
        freeze_objects()
        for kind in {each.kind for each in reflectors if each.has_other_versions}:
            if kind in self.absent:
                _log.warning("The API server has no version of a kind", kind=kind)
        cluster = self._engine.cluster
        _log.info("The cluster is known", nodes=len(cluster.nodes), pods=len(cluster.pods))
        self.known.set_result(None)
        # No task ends by itself.
        await self._wait_to_stop()

    async def _wait_to_stop(self) -> None:
        await self._stopping.wait()

    async def _leave(self) -> None:
        """Stops deciding, and finishes what was decided."""
        self._scheduler.rest()
        if self._performer is None:
            return
        if self._is_to_drain:
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    await self._performer.drain()
        await self._performer.stop()


def make_reflectors(
    api: Requests, engine: Engine, feed: Feed, *, keep_raw: Callable[[str], bool]
) -> list[Reflector]:
    """Makes a reflector for each kind that scheduling or a plugin reads."""
    gates = engine.configuration.gates
    kinds: list[ObjectKind] = [
        form for kind in sorted(READ_KINDS) for form in KINDS[kind].read_forms(gates)
    ]
    names = Counter((kind.group, kind.kind) for kind in kinds)
    return [
        Reflector(
            api,
            kind,
            feed,
            keep_raw=keep_raw(kind.kind),
            essential=isinstance(kind, KnownKind) and kind.essential,
            has_other_versions=names[kind.group, kind.kind] > 1,
        )
        for kind in (*kinds, *engine.handles.kinds)
    ]


async def keep_connections(api: Requests) -> None:
    """Keeps some connections open until cancelled, so that a burst of pods need not wait for them.

    Now and then it uses that many connections at once.
    """
    while True:
        asked = (api.get(SMALL_PATH) for _ in range(FIRST_CONNECTIONS))
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            # Only the first client that cannot reach the server reports it.
            if isinstance(outcome, Unreachable) and not outcome.is_repeated:
                _log.warning("Could not keep connections open", error=str(outcome))
        await asyncio.sleep(_KEEP_EVERY_SECONDS)
