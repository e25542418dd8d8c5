"""Lists and then watches without end, so that a sink knows what the API server knows."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from moorage.objects.decode import UNREADABLE, Reader, reader
from moorage.objects.meta import ObjectKind

from .api import Params, Requests
from .api_errors import ApiError, ClientError, OutcomeUnknown, TooLarge, Unreachable
from .connection import CredentialsError
from .listing import read_list
from .mirror import Mirror, Sink

__all__ = ["Reflector", "Sink"]

_LOG = logging.getLogger(__name__)

# Servers get watches back at different times, or all would come back at once.
_WATCH_SECONDS = (300, 600)

# A watch that ended sooner, without an event, is a failure: asking again at once would be a flood.
_SHORT_SECONDS = 1.0

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0

# After a line that cannot be read the kind is listed at once, but not more often than this: a user
# who can write such lines could keep us listing.
_SECONDS_BETWEEN_RELISTS = 10.0

# A kind that we can do without is asked for this often while the server has none or refuses it.
_ABSENCE_SECONDS = 30.0
# It is given up for the time being after that many answers that say the server has failed.
_MOST_SERVER_ERRORS = 3


class Reflector:
    """Keeps a sink up to date with one kind of objects.

    After any gap the sink is told the differences: no change is lost or told twice. A kind that is
    not `essential` counts as empty while the server does not have it or refuses it.
    """

    def __init__(  # noqa: PLR0913  # each is one independent setting with a default
        self,
        api: Requests,
        kind: ObjectKind,
        sink: Sink,
        *,
        decode: Reader | None = None,
        params: Params | None = None,
        keep_raw: bool = False,
        essential: bool = True,
        has_other_versions: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._api = api
        self.kind = kind.kind
        self._kind = kind
        self._essential = essential
        #: Whether the server may have the kind in another version, so that to lack this is no news.
        self.has_other_versions = has_other_versions
        #: What the kind is called whatever the version.
        self.resource = f"{kind.plural}.{kind.group}"
        self._path, selected = kind.listing
        self._params = {**selected, **(params or {})}
        self._mirror = Mirror(kind.kind, decode or reader(kind), sink, keep_raw=keep_raw)
        self._sink = sink
        self._clock = clock
        self._sleep = sleep
        self._chance = chance
        self._failures = 0
        #: Where to resume the watch; empty if a list is needed first.
        self._version = ""
        self._relisted_at = float("-inf")
        #: Whether the last list was made because the version was gone, and no watch has worked yet.
        self._listed_anew = False
        #: Set once the sink has been told everything, or the kind counts as empty.
        self.synced = asyncio.Event()
        #: What is wrong at the moment; empty if all is well.
        self.problem = ""
        #: Why the kind is done without at the moment; empty if it is not.
        self.absence = ""
        self._is_watch_refused = False

    async def run(self) -> None:
        """Lists and watches until cancelled. Raises what the sink raises."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except (ClientError, CredentialsError) as error:
                await self._recover(error)

    async def _list(self) -> None:
        mirror = self._mirror
        page = await read_list(
            self._api, self._path, self._params, mirror.begin_list, mirror.take_page
        )
        mirror.end_list()
        self._version = page.resource_version
        self._well()
        if not self._is_watch_refused:
            self._end_absence()
        self.synced.set()

    async def _watch(self) -> None:
        shortest, longest = _WATCH_SECONDS
        params = {
            **self._params,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": int(shortest + (longest - shortest) * self._chance()),
        }
        began, has_told = self._clock(), False
        try:
            async with aclosing(self._api.watch(self._path, params)) as lines:
                async for line in lines:
                    if not self._take_line(line):
                        await self._pace_relist()
                        return
                    has_told = True
        finally:
            lasted = self._clock() - began >= _SHORT_SECONDS
            if lasted:
                self._failures = 0
                self._listed_anew = False
        if not (has_told or lasted):
            raise OutcomeUnknown(f"watch {self._path}: it ended at once")
        self._end_absence()

    def _take_line(self, line: bytes) -> bool:
        """Takes in a line of a watch; returns whether it could be read."""
        try:
            reached = self._mirror.take_line(line)
        except UNREADABLE as error:
            self._sink.unreadable(self.kind, "", str(error))
            return False
        if reached:
            self._version = reached
        self._listed_anew = False
        self._well()
        self._end_absence()
        return True

    async def _pace_relist(self) -> None:
        """Lists all objects again, because it is not known which object a line was about."""
        self._version = ""
        pause = self._relisted_at + _SECONDS_BETWEEN_RELISTS - self._clock()
        if pause > 0:
            await self._sleep(pause)
        self._relisted_at = self._clock()

    def _well(self) -> None:
        self._failures = 0
        self.problem = ""

    async def _recover(self, error: Exception) -> None:
        self._failures += 1
        if isinstance(error, ApiError) and self._can_do_without(error):
            await self._do_without(error)
            return
        if isinstance(error, TooLarge):
            self._version = ""
        if isinstance(error, ApiError) and (error.is_gone or error.is_bad_request):
            self._version = ""
            if error.is_gone and not self._listed_anew:
                self._listed_anew = True
                return
        self.problem = str(error)
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(self._failures - 1, 10))
        pause *= 1 + self._chance()
        asked = error.retry_after if isinstance(error, ApiError) else None
        # That the server is away is the same news for all kinds.
        is_known = isinstance(error, Unreachable) and error.is_repeated
        level = logging.DEBUG if is_known else logging.WARNING
        text = "%s: %s; trying again in %.1f s"
        _LOG.log(level, text, self.kind, error, max(pause, asked or 0))
        await self._sleep(max(pause, asked or 0))

    # A kind that the server does not have, or refuses

    def _can_do_without(self, error: ApiError) -> bool:
        if self._essential:
            return False
        is_failing = error.is_server_error and self._failures >= _MOST_SERVER_ERRORS
        return error.is_not_found or error.is_forbidden or is_failing

    async def _do_without(self, error: ApiError) -> None:
        self._is_watch_refused = bool(self._version)
        self._version = ""
        if error.is_not_found:
            # Its objects went with it. Those that are merely refused may still be there.
            self._mirror.begin_list()
            self._mirror.end_list()
        if not self.absence and not (error.is_not_found and self.has_other_versions):
            _LOG.warning("%s: %s; %s", self.kind, error, self._advice(error))
        self.problem = self.absence = str(error)
        self.synced.set()
        await self._sleep(max(_ABSENCE_SECONDS * (1 + self._chance()), error.retry_after or 0))

    def _advice(self, error: ApiError) -> str:
        name = f"{self._kind.plural}.{self._kind.group}".rstrip(".")
        pause = f"{_ABSENCE_SECONDS:g} to {2 * _ABSENCE_SECONDS:g} s"
        goes_on = f"scheduling goes on without them, and asks again after {pause}"
        manifest = getattr(self._kind, "manifest", "")
        applied = f" (kubectl apply -k {manifest})" if manifest else ""
        if error.is_not_found:
            return f"create the CustomResourceDefinition {name}{applied}; until then {goes_on}"
        if error.is_forbidden:
            return f"grant the verbs list and watch for {name}{applied}; until then {goes_on}"
        return goes_on

    def _end_absence(self) -> None:
        if self.absence:
            _LOG.info("%s: is there now", self.kind)
        self.absence = ""
        self._is_watch_refused = False
