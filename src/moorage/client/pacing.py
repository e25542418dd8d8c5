"""Limits requests to what the server takes and to what the user allows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import ceil, inf

#: How many connections are opened as soon as they are needed. A leader keeps so many open. They are
#: enough for some ten pods at once with their events, or for five pods that evict others.
FIRST_CONNECTIONS = 16
# After how many seconds one more is opened while requests wait. Opening one takes both sides longer
# than several small requests, and even longer if many are opened at once.
_OPEN_EVERY = 0.01


#: Opens a connection, and returns when requests can use it.
Connect = Callable[[], Awaitable[object]]


class Pace:
    """Limits how many requests run at once: half as many after a refusal, then one more each time.

    The server knows best how much it can take, so there is no fixed rate. Each request needs a
    connection while it runs: an open one if one is free soon.
    """

    def __init__(
        self, most: int, kept_seconds: float = inf, connect: Connect | None = None
    ) -> None:
        """Unused connections are closed after `kept_seconds`.

        `connect` opens one while requests wait, so that these need not wait for it.
        """
        self._most = most
        self._allowed = float(most)
        self._kept_seconds = kept_seconds
        #: How many connections are open, as far as requests have needed them lately.
        self._open = FIRST_CONNECTIONS
        #: The most requests that were under way at once, and since when that is counted.
        self._peak = 0
        self._peak_since = -inf
        self._opening: asyncio.TimerHandle | None = None
        self._connect = connect
        self._connecting: set[asyncio.Task[None]] = set()
        self._under_way = 0
        self._entered = 0
        self._entered_at_cut = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def allowed(self) -> int:
        return int(self._allowed)

    async def enter(self) -> int:
        """Waits until a request may run, and returns its ticket for `refused`."""
        self._forget_closed(asyncio.get_running_loop().time())
        # A place that becomes free goes to a waiting request, so that no new request takes it.
        if self._under_way >= self._places:
            await self._turn()
        else:
            self._under_way += 1
        self._peak = max(self._peak, self._under_way)
        self._entered += 1
        return self._entered

    def close(self) -> None:
        """Opens no more connections."""
        if self._opening is not None:
            self._opening.cancel()
        for task in self._connecting:
            task.cancel()

    def leave(self) -> None:
        self._under_way -= 1
        self._admit()

    def succeeded(self) -> None:
        if self._allowed < self._most:
            self._allowed = min(self._most, self._allowed + 1 / self._allowed)
            self._admit()

    def refused(self, ticket: int) -> None:
        """Slows down, but only once for all requests that ran at the same time.

        Call it before `leave`, or the place goes to the next request at once.
        """
        if ticket <= self._entered_at_cut:
            return
        self._entered_at_cut = self._entered
        # It is half of what is in use: half of an allowance that is not used up changes nothing.
        self._allowed = max(1.0, min(self._allowed, self._under_way) / 2)

    @property
    def _places(self) -> int:
        return min(self.allowed, self._open)

    def _forget_closed(self, now: float) -> None:
        """Forgets connections that were closed because nothing used them for a while."""
        since = now - self._peak_since
        if since > self._kept_seconds:
            is_recent = since <= 2 * self._kept_seconds
            needed = self._peak if is_recent else 0
            self._open = max(FIRST_CONNECTIONS, min(self._open, needed))
            self._peak, self._peak_since = self._under_way, now

    def _open_another(self) -> None:
        """Opens one more connection, because requests have waited long enough."""
        self._opening = None
        if not self._waiting or self._open + len(self._connecting) >= self.allowed:
            return
        if self._connect is None:
            self._open += 1
            self._admit()
            return
        task = asyncio.get_running_loop().create_task(self._add(self._connect))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        self._open_soon()

    async def _add(self, connect: Connect) -> None:
        # If it cannot be opened, a request tries to open it and reports the error.
        with suppress(Exception):
            await connect()
        self._open += 1
        self._admit()

    def _open_soon(self) -> None:
        if self._waiting and self._opening is None and self._open < self.allowed:
            loop = asyncio.get_running_loop()
            self._opening = loop.call_later(_OPEN_EVERY, self._open_another)

    async def _turn(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._open_soon()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def _admit(self) -> None:
        while self._waiting and self._under_way < self._places:
            turn = self._waiting.popleft()
            if not turn.done():
                self._under_way += 1
                turn.set_result(None)
        self._open_soon()


class Bucket:
    """A token bucket: `qps` requests a second on average, `burst` of them at once."""

    def __init__(
        self,
        qps: float,
        burst: int,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._qps = qps
        self._burst = burst or ceil(qps)
        self._clock = clock
        self._sleep = sleep
        self._tokens = float(self._burst)
        self._filled_at = clock()

    async def take(self) -> None:
        now = self._clock()
        filled = self._tokens + (now - self._filled_at) * self._qps
        # A negative number counts the waiting requests, so that they run in the order of arrival.
        self._tokens = min(self._burst, filled) - 1
        self._filled_at = now
        if self._tokens < 0:
            await self._sleep(-self._tokens / self._qps)
