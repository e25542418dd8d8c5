"""An extender over HTTP for tests: it answers, or misbehaves, as it is told."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

#: Gets a request and the stream to answer on.
Behaviour = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Request:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class ExtenderServer:
    """Where the server is, and what it was asked."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0


def http(status: int, body: bytes = b"", *headers: str) -> bytes:
    """An answer as it is written."""
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def saying(answer: Any) -> Behaviour:
    """Answers with JSON, or with what a function makes of each request."""

    async def behave(request: Request, out: asyncio.StreamWriter) -> None:
        value = answer(request) if callable(answer) else answer
        out.write(http(200, value if isinstance(value, bytes) else json.dumps(value).encode()))

    return behave


@asynccontextmanager
async def extender_server(
    behave: Behaviour, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ExtenderServer]:
    """A server on a free port of this machine. It keeps connections open."""
    made = ExtenderServer()
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(read: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        made.connections += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while (request := await _read(read)) is not None:
                made.requests.append(request)
                await behave(request, out)
                await out.drain()
        except (ConnectionError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            out.close()
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    made.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield made
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read(read: asyncio.StreamReader) -> Request | None:
    try:
        head = await read.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode().strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await read.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body)
