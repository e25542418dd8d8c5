"""A thread with its own event loop, watched from the thread that started it.

A decision may take long, or never end. It runs on such a thread, so that signals, the lease and the
endpoints, which the main thread serves, do not wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from functools import partial
from time import monotonic
from typing import Any, Generic, TypeVar

import uvloop

from moorage.web.engine_reads import in_slices

from .logs import make_log

_log = make_log(__name__)

T = TypeVar("T")
R = TypeVar("R")

# How often the loop shows that it turns.
_BEAT_SECONDS = 0.5
# How long a reader waits for the loop to turn.
_PATIENCE_SECONDS = 5.0

#: How long the loop may stand still before it counts as hung.
HUNG_SECONDS = 30.0
#: How long a thread may take to end once it was asked to.
STOP_SECONDS = 15.0


class LoopThread(Generic[T]):
    """Runs one coroutine to its end on its own thread.

    `call`, `read`, `ended` and `stall_seconds` are for other threads.
    """

    def __init__(self, name: str, main: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._main = main
        self._loop: asyncio.AbstractEventLoop | None = None
        self._result: Future[T] = Future()
        # Not the clock that counts on while the machine is suspended: nobody could turn then.
        self._turned_at = monotonic()
        # Nobody waits for it when the process ends: it may never end.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._turned_at = monotonic()
        self._loop = uvloop.new_event_loop()
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._loop is not None and not self._result.done()

    def stall_seconds(self) -> float:
        """Returns how long the loop has not turned, to within one beat."""
        return max(0.0, monotonic() - self._turned_at) if self.is_running else 0.0

    async def wait(self) -> T:
        """Returns or raises what the coroutine returns or raises.

        A cancelled wait does not end the thread.
        """
        return await asyncio.shield(asyncio.wrap_future(self._result))

    def call(self, function: Callable[..., object], *args: Any) -> None:
        """Calls a function on the loop, if the loop has begun and not ended."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function, *args)

    async def read(self, steps: Generator[None, None, R]) -> R:
        """Runs steps on the loop, with other work between them.

        Raises TimeoutError if the loop does not turn.
        """
        if self._loop is None or not self.is_running:
            raise TimeoutError("the loop does not run")
        reading = asyncio.run_coroutine_threadsafe(in_slices(steps), self._loop)
        waited_for = asyncio.wrap_future(reading)
        try:
            while self.is_running and self.stall_seconds() < _PATIENCE_SECONDS:
                done, _ = await asyncio.wait((waited_for,), timeout=_BEAT_SECONDS)
                if waited_for.cancelled():
                    break
                if done:
                    return waited_for.result()
            raise TimeoutError("the loop does not answer")
        finally:
            reading.cancel()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._take_loop) as runner:
                result = runner.run(self._run_main())
        except BaseException as error:  # noqa: BLE001 - `wait` raises it
            self._result.set_exception(error)
        else:
            self._result.set_result(result)

    def _take_loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None, "the thread was started"
        return self._loop

    async def _run_main(self) -> T:
        beating = asyncio.create_task(self._beat())
        try:
            return await self._main()
        finally:
            beating.cancel()

    async def _beat(self) -> None:
        while True:
            self._turned_at = monotonic()
            await asyncio.sleep(_BEAT_SECONDS)


async def wait_at_most(thread: LoopThread[T], seconds: float) -> bool:
    """Waits for the thread to end; returns whether it did. Raises what the thread raised."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await thread.wait()
            return True
    return not thread.is_running


def exit_now(code: int) -> None:
    """Ends the process without waiting for threads that do not end."""
    logging.shutdown()
    os._exit(code)


def on_signals(*numbers: signal.Signals, call: Callable[[], None]) -> None:
    """Makes the loop of the main thread call a function when the process gets such a signal."""
    loop = asyncio.get_running_loop()
    for number in numbers:
        loop.add_signal_handler(number, call)


def run_until_signal(
    thread: LoopThread[None], stop: Callable[[], None], compare: Callable[[], None]
) -> None:
    """Starts the thread and waits for its end; a signal asks it to stop, on its loop.

    SIGUSR2 asks it to compare instead. The process exits if the thread does not stop in time.
    """

    async def attend() -> None:
        signalled = asyncio.Event()
        on_signals(signal.SIGTERM, signal.SIGINT, call=signalled.set)
        on_signals(signal.SIGUSR2, call=partial(thread.call, compare))
        thread.start()
        waiting = asyncio.create_task(signalled.wait())
        ended = asyncio.create_task(thread.wait())
        await asyncio.wait((waiting, ended), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        ended.cancel()
        thread.call(stop)
        if not await wait_at_most(thread, STOP_SECONDS):
            _log.error("A decision does not end: the process exits without it")

    uvloop.run(attend())
    if thread.is_running:
        exit_now(1)
