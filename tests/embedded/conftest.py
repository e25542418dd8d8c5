"""A server for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.embedded.serving import Client, served


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with served() as client:
        yield client
