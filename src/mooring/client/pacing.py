"""How fast to ask: as fast as the server lets us, and no faster than the user wants."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from math import ceil


class Pace:
    """How many requests may be under way: half as many after a refusal, then one more by one.

    The server knows best how much it can take, so there is no fixed rate to choose.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._allowed = float(most)
        self._under_way = 0
        self._entered = 0
        self._entered_at_cut = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def allowed(self) -> int:
        return int(self._allowed)

    async def enter(self) -> int:
        """Waits for its turn; returns a ticket to show with a refusal."""
        # Places that become free are given to those who wait, so that no newcomer finds one.
        if self._under_way >= self.allowed:
            await self._turn()
        else:
            self._under_way += 1
        self._entered += 1
        return self._entered

    def leave(self) -> None:
        self._under_way -= 1
        self._admit()

    def succeeded(self) -> None:
        if self._allowed < self._most:
            self._allowed = min(self._most, self._allowed + 1 / self._allowed)
            self._admit()

    def refused(self, ticket: int) -> None:
        """Slows down, but once for all the requests that were under way together.

        To be told before leaving, or the place would go to the next at once.
        """
        if ticket <= self._entered_at_cut:
            return
        self._entered_at_cut = self._entered
        # Half of what is in use: half of an allowance that nobody uses up would change nothing.
        self._allowed = max(1.0, min(self._allowed, self._under_way) / 2)

    async def _turn(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def _admit(self) -> None:
        while self._waiting and self._under_way < self.allowed:
            turn = self._waiting.popleft()
            if not turn.done():
                self._under_way += 1
                turn.set_result(None)


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
        # Below zero are those who wait, so that they are served in the order in which they came.
        self._tokens = min(self._burst, filled) - 1
        self._filled_at = now
        if self._tokens < 0:
            await self._sleep(-self._tokens / self._qps)
