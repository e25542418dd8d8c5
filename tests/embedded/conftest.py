"""A server for each test that asks for one, and kubectls that talk to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from moorage.embedded.server import Server, ServerSettings, serve
from tests.embedded.kubectl import BINARIES, Kubectl
from tests.embedded.serving import TOKEN, Client, node, pod, served


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with served() as client:
        yield client


@pytest.fixture
async def secure() -> AsyncIterator[Client]:
    """A server with TLS: kubectl sends tokens in no other way."""
    async with served(ServerSettings(tls=True)) as client:
        yield client


@pytest.fixture(params=BINARIES or [""])
def kubectl(request: pytest.FixtureRequest, secure: Client, tmp_path: Path) -> Kubectl:
    return Kubectl.of(request.param, secure.running, tmp_path)


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    """A server in a thread of its own, for tests that ask thousands of things."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    quiet = ServerSettings(tls=False, token=TOKEN, bookmark_seconds=0.01)
    started = asyncio.run_coroutine_threadsafe(serve(quiet), loop).result()
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": {"type": "object"}},
                        }
                    },
                }
            ],
        },
    }
    kinds = started.api.kinds
    crd = kinds["customresourcedefinitions.apiextensions.k8s.io"]
    started.api.create(crd, "", definition)
    started.api.create(kinds["pods"], "default", pod("p"))
    started.api.create(kinds["nodes"], "", node("n"))
    yield started
    asyncio.run_coroutine_threadsafe(started.stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
