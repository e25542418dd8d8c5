"""A queue of keys: each is in it at most once, those that failed come back later and later."""

from __future__ import annotations

import asyncio

# A first retry is nearly at once, for conflicts; a lasting failure is tried twice a minute.
_FIRST_RETRY_SECONDS = 0.005
_LONGEST_RETRY_SECONDS = 30.0
_MOST_DOUBLINGS = 20


class WorkQueue:
    """Keys in the order in which they were added."""

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}
        self._later: dict[str, asyncio.TimerHandle] = {}
        self._failures: dict[str, int] = {}
        self._resting: dict[str, bool] = {}
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: str) -> None:
        """Has a key looked at; one that rests is once it has rested."""
        if key in self._resting:
            self._resting[key] = True
            return
        self.add_now(key)

    def add_now(self, key: str) -> None:
        """Has a key looked at, even if it rests."""
        self._keys[key] = None
        self._filled.set()

    def add_after(self, key: str, seconds: float) -> None:
        """Has a key looked at after a while, or sooner if that was asked for."""
        if seconds <= 0:
            self.add_now(key)
            return
        loop = asyncio.get_running_loop()
        pending = self._later.get(key)
        if pending is not None:
            if pending.when() <= loop.time() + seconds:
                return
            pending.cancel()
        self._later[key] = loop.call_later(seconds, self._due, key)

    def retry(self, key: str) -> None:
        """Has a key that failed looked at again, later each time."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        seconds = _FIRST_RETRY_SECONDS * 2 ** min(failures, _MOST_DOUBLINGS)
        self.add_after(key, min(seconds, _LONGEST_RETRY_SECONDS))

    def succeeded(self, key: str) -> None:
        self._failures.pop(key, None)

    def rest(self, key: str, seconds: float) -> None:
        """Leaves a key alone for a while, whatever happens."""
        self._resting[key] = self._keys.pop(key, 0) is None
        asyncio.get_running_loop().call_later(seconds, self._rested, key)

    async def take(self) -> str:
        """The key that has waited longest, once there is one."""
        while not self._keys:
            self._filled.clear()
            await self._filled.wait()
        key = next(iter(self._keys))
        del self._keys[key]
        return key

    def close(self) -> None:
        """Forgets what was to be looked at later."""
        for each in self._later.values():
            each.cancel()
        self._later.clear()

    def _due(self, key: str) -> None:
        self._later.pop(key, None)
        self.add(key)

    def _rested(self, key: str) -> None:
        if self._resting.pop(key, False):
            self.add_now(key)
