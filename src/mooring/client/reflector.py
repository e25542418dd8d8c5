"""List, then watch, for ever: a sink that knows what the API server knows."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from mooring.objects.decode import ListMeta, Reader, reader

from .connection import CredentialsError
from .errors import ApiError, ClientError, OutcomeUnknown
from .mirror import UNREADABLE, Mirror, Sink
from .requests import Params, Requests
from .resources import Resource

__all__ = ["Reflector", "Sink"]

_LOG = logging.getLogger(__name__)

PAGE_SIZE = 500

# Servers get watches back at different times, or all would come back at once.
_WATCH_SECONDS = (300, 600)

# A watch that ended sooner, and told nothing, is a failure: asking again at once would be a flood.
_SHORT_SECONDS = 1.0

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0


class Reflector:
    """Keeps a sink up to date with one kind of objects.

    After a gap of any kind the sink is told the differences: nothing is lost, nothing told twice.
    """

    def __init__(  # noqa: PLR0913  # each is one independent setting with a default
        self,
        api: Requests,
        resource: Resource,
        sink: Sink,
        *,
        decode: Reader | None = None,
        params: Params | None = None,
        keep_raw: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._api = api
        self.kind = resource.kind
        self._path = resource.path()
        self._params = dict(params or {})
        self._mirror = Mirror(
            resource.kind, decode or reader(resource.kind), sink, keep_raw=keep_raw
        )
        self._sink = sink
        self._clock = clock
        self._sleep = sleep
        self._chance = chance
        self._failures = 0
        #: Where to resume the watch; empty if a list is needed first.
        self._version = ""
        self._missed_a_line = False
        #: Whether the last list was made because the version was gone, and no watch has worked yet.
        self._listed_anew = False
        #: Set once the sink has been told everything.
        self.synced = asyncio.Event()
        #: What is wrong at the moment; empty if all is well.
        self.problem = ""

    async def run(self) -> None:
        """Lists and watches until cancelled. What the sink raises is raised here."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except (ClientError, CredentialsError) as error:
                await self._recover(error)

    async def _list(self) -> None:
        params: dict[str, str | int] = {**self._params, "limit": PAGE_SIZE}
        self._mirror.begin_list()
        while True:
            try:
                page = self._take_page(await self._api.get(self._path, params))
            except ApiError as error:
                if not (error.is_gone and "limit" in params and "continue" in params):
                    raise
                # The list took too long to go on with; this time all of it comes at once.
                params = dict(self._params)
                self._mirror.begin_list()
                continue
            if not page.go_on:
                break
            params["continue"] = page.go_on
        self._mirror.end_list()
        self._version = page.resource_version
        self._missed_a_line = False
        self._well()
        self.synced.set()

    def _take_page(self, text: bytes) -> ListMeta:
        try:
            return self._mirror.take_page(text)
        except UNREADABLE as error:
            raise OutcomeUnknown(f"GET {self._path}: not a list: {error}") from error

    async def _watch(self) -> None:
        shortest, longest = _WATCH_SECONDS
        params = {
            **self._params,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": int(shortest + (longest - shortest) * self._chance()),
        }
        began, told = self._clock(), False
        try:
            async with aclosing(self._api.watch(self._path, params)) as lines:
                async for line in lines:
                    told = self._take_line(line) or told
        finally:
            lasted = self._clock() - began >= _SHORT_SECONDS
            if lasted:
                self._failures = 0
                self._listed_anew = False
        if self._missed_a_line:
            self._version = ""
        if not (told or lasted):
            raise OutcomeUnknown(f"watch {self._path}: it ended at once")

    def _take_line(self, line: bytes) -> bool:
        """Whether it could be read."""
        try:
            reached = self._mirror.take_line(line)
        except UNREADABLE as error:
            # Nobody knows which object this was about. The next list will tell.
            self._missed_a_line = True
            self._sink.unreadable(self.kind, "", str(error))
            return False
        if reached:
            self._version = reached
        self._listed_anew = False
        self._well()
        return True

    def _well(self) -> None:
        self._failures = 0
        self.problem = ""

    async def _recover(self, error: Exception) -> None:
        self._failures += 1
        if isinstance(error, ApiError) and (error.is_gone or error.is_bad_request):
            self._version = ""
            if error.is_gone and not self._listed_anew:
                self._listed_anew = True
                return
        self.problem = str(error)
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(self._failures - 1, 10))
        pause *= 1 + self._chance()
        asked = error.retry_after if isinstance(error, ApiError) else None
        _LOG.warning("%s: %s; trying again in %.1f s", self.kind, error, max(pause, asked or 0))
        await self._sleep(max(pause, asked or 0))
