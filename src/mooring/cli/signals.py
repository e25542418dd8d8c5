"""Commands that go on until they are told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class StopSignal:
    """Waits for SIGTERM or SIGINT. To be made within a running loop."""

    def __init__(self, seconds: float | None = None) -> None:
        """Counts as told to stop after so many seconds."""
        loop = asyncio.get_running_loop()
        self._came = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._came.set)
        if seconds is not None:
            loop.call_later(seconds, self._came.set)

    @contextmanager
    def heed_key(self, key: bytes) -> Iterator[None]:
        """Counts as told to stop when this key is pressed, if keys can be read."""
        if not sys.stdin.isatty():
            yield
            return
        import termios
        import tty

        loop, keys = asyncio.get_running_loop(), sys.stdin.fileno()
        before = termios.tcgetattr(keys)

        def read() -> None:
            pressed = os.read(keys, 64)
            # A terminal that is gone has nothing to read for ever.
            if key in pressed or not pressed:
                loop.remove_reader(keys)
                self._came.set()

        tty.setcbreak(keys)
        loop.add_reader(keys, read)
        try:
            yield
        finally:
            loop.remove_reader(keys)
            termios.tcsetattr(keys, termios.TCSADRAIN, before)

    @property
    def came(self) -> bool:
        return self._came.is_set()

    async def wait(self, seconds: float | None = None) -> None:
        """Returns when told to stop, or after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._came.wait()
        except TimeoutError:
            pass
