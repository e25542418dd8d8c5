"""Commands that go on until they are told to stop."""

from __future__ import annotations

import asyncio
import signal


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
