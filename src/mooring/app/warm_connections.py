"""Keeps some connections to an API server open, so that no burst of pods has to wait for them."""

from __future__ import annotations

import asyncio

from mooring.client.api import SMALL_PATH, Requests
from mooring.client.pacing import FIRST_CONNECTIONS

# Less than the client keeps connections that nobody uses.
_EVERY_SECONDS = 20.0


async def keep_connections(api: Requests) -> None:
    """Uses so many connections at once from time to time, until cancelled."""
    while True:
        asked = (api.get(SMALL_PATH) for _ in range(FIRST_CONNECTIONS))
        # Where the server does not answer, those say so who have something to ask it.
        await asyncio.gather(*asked, return_exceptions=True)
        await asyncio.sleep(_EVERY_SECONDS)
