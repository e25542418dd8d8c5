"""What chapters have at hand: the cluster, the scheduler, and somebody who tells."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from mooring.app.observations import Observations
from mooring.engine import Engine
from mooring.engine.explain import Explanation, explain
from mooring.objects.pod import Pod

from .client import Client
from .figures import Figures, figures
from .pods import Pods
from .promises import BrokenPromise

# What has not come true by then never does, however much else a machine has to do.
_PATIENCE_SECONDS = 180.0
# How often it is looked whether something has come true. The scheduler shares our processor: at
# each of thousands of changes it would miss the time.
_LOOK_SECONDS = 0.02


class Teller(Protocol):
    """Shows the story."""

    def chapter(self, number: int, total: int, title: str, about: str) -> None:
        """What comes now."""

    def typed(self, command: str) -> None:
        """What a user could have typed for what is done next."""

    def kept(self, promise: str) -> None:
        """What was promised, and is so."""

    def quoted(self, text: str) -> None:
        """The cluster's own words."""

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None: ...

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """Shows that something is waited for, for as long as the context lasts."""


@dataclass(kw_only=True)
class Stage:
    """Where a chapter plays."""

    client: Client
    pods: Pods
    tell: Teller
    engine: Engine
    observations: Observations
    #: Seconds to read what was told before the story goes on.
    pace: float = 0.0
    patience: float = _PATIENCE_SECONDS

    async def pause(self) -> None:
        """Leaves time to read."""
        await asyncio.sleep(self.pace)

    def promise(self, promised: str, kept: bool, seen: object) -> None:
        """Tells what is so; raises BrokenPromise if it is not."""
        if not kept:
            raise BrokenPromise(promised, str(seen))
        self.tell.kept(promised)

    async def until(
        self, promised: str, kept: Callable[[], bool], seen: Callable[[], object]
    ) -> None:
        """Waits until the pods are as was promised, and tells it."""
        await self._patiently(promised, self._pods_are(kept), seen)
        self.tell.kept(promised)

    async def until_gone(self, app: str) -> None:
        """Waits until nothing is left of a workload that was deleted."""
        promised = f"all pods of {app} are gone"
        await self._patiently(
            promised,
            self._pods_are(lambda: not self.pods.of(app)),
            lambda: f"{len(self.pods.of(app))} are still there",
        )

    async def until_told(self, promised: str, reason: str, message: str, count: int) -> None:
        """Waits until as many pods have such an event, and tells it."""
        found: list[str] = []

        async def there_are() -> None:
            while True:
                found[:] = [each["message"] for each in await self.client.events(reason)]
                if found.count(message) == count:
                    return
                await asyncio.sleep(_LOOK_SECONDS)

        await self._patiently(promised, there_are(), lambda: found)
        self.tell.kept(promised)
        self.tell.quoted(message)

    def figures(self) -> Figures:
        """How decisions went so far."""
        return figures(self.engine, self.observations)

    def explained(self, name: str) -> Explanation:
        """Why a pod that waits does so, as `mooring explain` tells it."""
        return explain(self.engine, self._waiting(name))

    def _waiting(self, name: str) -> Pod:
        for queued in (*self.engine.queue, *self.engine.queue.in_flight):
            if queued.pod.key == f"default/{name}":
                return queued.pod
        raise BrokenPromise(f"pod {name} waits in the queue", "it is not there")

    async def _pods_are(self, kept: Callable[[], bool]) -> None:
        while not kept():
            await self.pods.change()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _patiently(
        self, promised: str, outcome: Awaitable[None], seen: Callable[[], object]
    ) -> None:
        try:
            with self.tell.waiting(promised):
                async with asyncio.timeout(self.patience):
                    await outcome
        except TimeoutError:
            raise BrokenPromise(promised, str(seen())) from None
