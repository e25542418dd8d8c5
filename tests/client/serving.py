"""A server for one test, which answers as the test says."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from moorage.client import Api, Connection
from moorage.client.connection import Endpoint

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serves on a free port of loopback; yields the address."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = runner.addresses[0][1]
        yield f"{'https' if context else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def asking(handler: Handler, **settings: Any) -> AsyncIterator[Api]:
    """A client of such a server."""
    async with (
        serving(handler) as server,
        Api(Connection(Endpoint(server)), **settings) as api,
    ):
        yield api


def answers(*given: web.Response | Exception) -> tuple[Handler, list[web.BaseRequest]]:
    """A handler that gives these answers in turn, and the requests that it has seen."""
    left = iter(given)
    seen: list[web.BaseRequest] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        seen.append(request)
        answer = next(left)
        if isinstance(answer, Exception):
            hang_up(request)
            raise answer
        return answer

    return handler, seen


def hang_up(request: web.BaseRequest) -> None:
    """Cuts the connection without a word."""
    assert request.transport is not None
    request.transport.abort()


def status(code: int, reason: str = "", message: str = "", **headers: str) -> web.Response:
    """A refusal as API servers write it."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return web.json_response(
        body, status=code, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )


async def stream(request: web.BaseRequest, chunks: Iterable[bytes]) -> web.StreamResponse:
    """Answers piece by piece."""
    response = web.StreamResponse()
    await response.prepare(request)
    for chunk in chunks:
        await response.write(chunk)
    return response


class Naps:
    """Sleeping that takes no time but is noted."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
