"""Waiting for what a test expects: until it is there, and for as long as only a hang takes.

No test may fail because the machine is slow, so that nothing else in the tests says how long
something may take. `tests/test_slow_machines.py` looks for such limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import aiohttp

_T = TypeVar("_T")

#: The longest tests take half a minute on an idle machine. Nothing takes that long, not even on a
#: machine ten times slower that has ten times more to do than it can.
PATIENCE_SECONDS = 3600.0

_PAUSE_SECONDS = 0.05


async def until(look: Callable[[], Awaitable[_T]], what: str = "what is waited for") -> _T:
    """Looks again and again until there is something to see; returns it."""
    found = await look()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not found:
                await asyncio.sleep(_PAUSE_SECONDS)
                found = await look()
    except TimeoutError:
        raise AssertionError(f"{what} does not come; the last that was seen: {found}") from None
    return found


async def until_true(is_so: Callable[[], object], what: str = "what is waited for") -> None:
    """Looks again and again until something is so."""

    async def look() -> bool:
        return bool(is_so())

    await until(look, what)


def open_session(**given: Any) -> aiohttp.ClientSession:
    """Opens a session for requests that may take long: by itself aiohttp waits five minutes."""
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE_SECONDS), **given)
