"""A proxy before an API server that makes go wrong what a test asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

import aiohttp
from aiohttp import web

from tests.patience import open_session

_HOP_BY_HOP = {"host", "connection", "transfer-encoding", "content-length", "keep-alive"}


@dataclass
class Faults:
    """What goes wrong. All of it may be changed at any time."""

    #: Watches are cut off after so many seconds.
    watch_seconds: float | None = None
    #: The share of watches that are answered with 410 Gone.
    gone: float = 0.0
    #: The share of requests, watches aside, that are answered with 429 and Retry-After.
    throttled: float = 0.0
    #: The share of bindings that fail and are not made.
    failed_bindings: float = 0.0
    #: The share of bindings that are made, but whose answer is lost.
    lost_bindings: float = 0.0
    #: Whether the first write to every claim, and to its status, is refused as a conflict.
    conflicting_claims: bool = False
    #: The share of writes to claims that are made, but whose answer is lost.
    lost_claims: float = 0.0
    #: Called with method and path when a claim was written, before that is answered.
    after_claim_write: Callable[[str, str], Awaitable[None]] | None = None
    #: Bindings are held back for so long.
    binding_seconds: float = 0.0
    #: Called before a binding is passed on.
    before_binding: Callable[[str], Awaitable[None]] | None = None
    #: Called with the pod's path after a binding was made. Until it returns, watches and lists
    #: tell nothing, and a watch that had something to tell must begin with a list.
    after_binding: Callable[[str], Awaitable[None]] | None = None
    #: Called before a write is passed on, and before its answer is: leases and events aside.
    before_write: Callable[[], Awaitable[None]] | None = None
    before_answer: Callable[[], Awaitable[None]] | None = None
    #: Changes what the API server tells.
    rewrite: Callable[[bytes], bytes] = bytes
    #: How often each kind of fault struck.
    struck: dict[str, int] = field(default_factory=dict)

    def note(self, what: str) -> None:
        self.struck[what] = self.struck.get(what, 0) + 1


class FaultyProxy:
    """Passes requests on to `server`, with faults."""

    def __init__(self, server: str, faults: Faults, seed: int = 1) -> None:
        self._server = server
        self._faults = faults
        self._random = Random(seed)
        self._session: aiohttp.ClientSession | None = None
        self.url = ""
        self._deaf = 0
        self._quiet = asyncio.Condition()
        #: The paths of watches that had something to tell while nobody heard.
        self._missed: set[str] = set()
        #: The paths of claims that were refused once.
        self._conflicted: set[str] = set()
        #: Every binding that was passed on: the pod's path and the answer's status.
        self.bindings: list[tuple[str, int]] = []
        #: The method and path of every other write that came.
        self.writes: list[tuple[str, str]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FaultyProxy]:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        connector = aiohttp.TCPConnector(ssl=False, limit=0)
        async with open_session(connector=connector, auto_decompress=False) as self._session:
            try:
                yield self
            finally:
                await runner.cleanup()

    def _strikes(self, what: str, share: float) -> bool:
        if self._random.random() >= share:
            return False
        self._faults.note(what)
        return True

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") in ("1", "true"):
            return await self._watch(request)
        if self._strikes("throttled", self._faults.throttled):
            return _refusal(429, "TooManyRequests", {"Retry-After": "1"})
        writes = _is_write(request)
        if writes and self._faults.before_write is not None:
            await self._faults.before_write()
        if request.path.endswith("/binding"):
            return await self._bind(request)
        if request.method == "GET":
            await self._hearing()
        else:
            self.writes.append((request.method, request.path))
        if "/resourceclaims" in request.path and writes:
            return await self._write_claim(request)
        status, headers, body = await self._pass_on(request)
        if writes and self._faults.before_answer is not None:
            await self._faults.before_answer()
        return web.Response(status=status, headers=headers, body=self._faults.rewrite(body))

    async def _write_claim(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST" and self._is_conflict(request.path):
            return _refusal(409, "Conflict")
        status, headers, body = await self._pass_on(request)
        if self._strikes("lost claim", self._faults.lost_claims):
            _cut(request)
        if self._faults.after_claim_write is not None:
            await self._faults.after_claim_write(request.method, request.path)
        return web.Response(status=status, headers=headers, body=body)

    def _is_conflict(self, path: str) -> bool:
        if not self._faults.conflicting_claims or path in self._conflicted:
            return False
        self._conflicted.add(path)
        self._faults.note("conflict")
        return True

    async def _hearing(self) -> None:
        """Waits until there is something to be told again."""
        async with self._quiet:
            await self._quiet.wait_for(lambda: not self._deaf)

    async def _bind(self, request: web.Request) -> web.StreamResponse:
        faults = self._faults
        if self._strikes("failed binding", faults.failed_bindings):
            return _refusal(500, "InternalError")
        await asyncio.sleep(faults.binding_seconds)
        if faults.before_binding is not None:
            await faults.before_binding(request.path)
        self._deaf += faults.after_binding is not None
        status, headers, body = await self._pass_on(request)
        bound = request.path.removesuffix("/binding")
        if status < 300 and faults.after_binding is not None:
            await faults.after_binding(bound)
            async with self._quiet:
                self._deaf -= 1
                self._quiet.notify_all()
        self.bindings.append((bound, status))
        if faults.before_answer is not None:
            await faults.before_answer()
        if self._strikes("lost binding", faults.lost_bindings):
            _cut(request)
        return web.Response(status=status, headers=headers, body=body)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        await self._hearing()
        missed = request.path in self._missed
        self._missed.discard(request.path)
        if self._strikes("gone", 1.0 if missed else self._faults.gone):
            return _refusal(410, "Expired")
        assert self._session is not None
        answer = web.StreamResponse()
        try:
            async with self._session.get(
                self._server + request.path_qs, headers=_forwarded(request)
            ) as upstream:
                answer.set_status(upstream.status)
                answer.headers["Content-Type"] = upstream.headers["Content-Type"]
                await answer.prepare(request)
                async with asyncio.timeout(self._faults.watch_seconds):
                    async for chunk in upstream.content.iter_any():
                        if self._deaf:
                            self._missed.add(request.path)
                            raise ConnectionError("nobody hears this")
                        await answer.write(self._faults.rewrite(chunk))
        except TimeoutError:
            self._faults.note("watch cut")
            _cut(request)
        except (aiohttp.ClientError, ConnectionError):
            _cut(request)
        return answer

    async def _pass_on(self, request: web.Request) -> tuple[int, dict[str, str], bytes]:
        assert self._session is not None
        try:
            async with self._session.request(
                request.method,
                self._server + request.path_qs,
                headers=_forwarded(request),
                data=await request.read(),
            ) as upstream:
                kept = ("Content-Type", "Retry-After")
                headers = {k: upstream.headers[k] for k in kept if k in upstream.headers}
                return upstream.status, headers, await upstream.read()
        except (aiohttp.ClientError, ConnectionError):
            # The API server is down: its clients see their connection break.
            _cut(request)
            raise


def _is_write(request: web.Request) -> bool:
    """Whether a request changes what others schedule by."""
    told = ("/leases", "/events", "reviews")
    return request.method != "GET" and not any(word in request.path for word in told)


def _forwarded(request: web.Request) -> dict[str, str]:
    return {
        name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP
    }


def _cut(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _refusal(status: int, reason: str, headers: dict[str, str] | None = None) -> web.Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "code": status,
        "message": f"made up: {reason}",
    }
    return web.json_response(body, status=status, headers=headers)
