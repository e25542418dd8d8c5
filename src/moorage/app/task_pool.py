"""Runs a bounded number of coroutines at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, cast

Work = Callable[[], Coroutine[Any, Any, None]]


class TaskPool:
    """Runs at most `size` pieces of work at once; the others wait in line."""

    def __init__(
        self,
        size: int,
        *,
        done: Callable[[], None] | None = None,
        most_waiting: int | None = None,
        on_drop: Callable[[], None] = lambda: None,
    ) -> None:
        self._size = size
        #: Called after each piece of work.
        self._done = done
        #: Beyond it, the oldest waiting piece is dropped: only for work that may be lost.
        self._most_waiting = most_waiting
        self._on_drop = on_drop
        self._waiting: deque[Work] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._unfinished = 0
        self.dropped = 0

    def __len__(self) -> int:
        """Returns how many pieces of work run or wait."""
        return self._unfinished

    def put(self, work: Work) -> None:
        """Starts a piece of work, now or as soon as there is room."""
        self._unfinished += 1
        if len(self._workers) < self._size:
            worker = asyncio.get_running_loop().create_task(self._work(work))
            self._workers.add(worker)
            return
        self._waiting.append(work)
        if self._most_waiting is not None and len(self._waiting) > self._most_waiting:
            self._waiting.popleft()
            self._unfinished -= 1
            self.dropped += 1
            self._on_drop()

    async def drain(self) -> None:
        """Returns when all work is done."""
        while self._workers:
            await asyncio.wait(list(self._workers))

    async def stop(self) -> None:
        """Drops waiting work and cancels running work."""
        self._waiting.clear()
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        # Those that never began could not leave.
        self._workers.clear()
        self._unfinished = 0

    async def _work(self, work: Work) -> None:
        # One worker does many pieces: starting a task for each would cost more than most of them.
        try:
            await self._do(work)
            while self._waiting:
                await self._do(self._waiting.popleft())
        finally:
            # At once, not when the loop says that the task is done: what is put in between would
            # be left to a worker that looks no more.
            self._workers.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _do(self, work: Work) -> None:
        try:
            await work()
        finally:
            self._unfinished -= 1
        if self._done is not None:
            self._done()
