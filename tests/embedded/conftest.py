"""A server for each test that asks for one, and kubectls that talk to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mooring.embedded.settings import Settings
from tests.embedded.kubectl import BINARIES, Kubectl
from tests.embedded.serving import Client, served


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with served() as client:
        yield client


@pytest.fixture
async def secure() -> AsyncIterator[Client]:
    """A server with TLS: kubectl sends tokens in no other way."""
    async with served(Settings(tls=True)) as client:
        yield client


@pytest.fixture(params=BINARIES or [""])
def kubectl(request: pytest.FixtureRequest, secure: Client, tmp_path: Path) -> Kubectl:
    return Kubectl.of(request.param, secure.running, tmp_path)
