"""Lets a command run until a signal, a key or a time limit stops it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class StopSignal:
    """Waits for SIGTERM or SIGINT. Make it within a running loop."""

    def __init__(self, seconds: float | None = None) -> None:
        """Also stops after this many seconds, if given."""
        loop = asyncio.get_running_loop()
        self._came = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._came.set)
        if seconds is not None:
            loop.call_later(seconds, self._came.set)

    @contextmanager
    def stop_on_key(self, key: bytes) -> Iterator[None]:
        """Also stops when this key is pressed, if keys can be read."""
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
        """Returns at the signal, or after this many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._came.wait()
        except TimeoutError:
            pass
