"""Some connections stay open while nobody needs them."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any, cast

import pytest

from moorage.app.worker import keep_connections
from moorage.client.api import Requests
from moorage.client.api_errors import Unreachable
from moorage.client.pacing import FIRST_CONNECTIONS
from tests.virtual_time import run_virtually


class CountingApi:
    """Counts how many requests are under way at once, and breaks each second round."""

    def __init__(self) -> None:
        self.under_way = self.most = 0
        self.moments: list[float] = []

    async def get(self, path: str, params: Any = None) -> bytes:
        self.moments.append(asyncio.get_running_loop().time())
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0.1)
        self.under_way -= 1
        if len(set(self.moments)) % 2:
            return b"{}"
        raise OSError("the server is away")


def test_they_are_used_at_once_before_they_would_be_closed() -> None:
    api = CountingApi()

    async def play() -> None:
        keeping = asyncio.create_task(keep_connections(cast(Requests, api)))
        await asyncio.sleep(70)
        keeping.cancel()

    run_virtually(play())

    moments = sorted(set(api.moments))
    assert api.most == FIRST_CONNECTIONS
    assert len(moments) == 4
    assert all(later - before < 30 for before, later in pairwise(moments))


class AwayApi:
    """Cannot be reached. It says of all but the first request that this is known."""

    def __init__(self) -> None:
        self._asked = 0

    async def get(self, path: str, params: Any = None) -> bytes:
        self._asked += 1
        raise Unreachable("nobody there", is_repeated=self._asked > 1)


def test_a_server_that_cannot_be_reached_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        keeping = asyncio.create_task(keep_connections(cast(Requests, AwayApi())))
        await asyncio.sleep(50)
        keeping.cancel()

    run_virtually(play())

    assert caplog.messages == ["Could not keep connections open"]
