"""An API server that reviews tokens and access, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from moorage.app.authorization import ACCESS_REVIEWS, TOKEN_REVIEWS
from tests.patience import open_session


@dataclass
class Reviews:
    """Knows users by token, and what each user may read. Keeps what it was asked."""

    users: dict[str, str] = field(default_factory=dict)
    allowed: set[tuple[str, str]] = field(default_factory=set)
    asked: list[dict[str, Any]] = field(default_factory=list)
    #: Answers with this status instead.
    broken: int = 0

    async def answer(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.asked.append(review)
        if self.broken:
            return web.Response(status=self.broken, text="out of order")
        spec = review["spec"]
        status = self._token(spec) if request.path == TOKEN_REVIEWS else self._access(spec)
        return web.json_response({**review, "status": status}, status=201)

    def _token(self, spec: dict[str, Any]) -> dict[str, Any]:
        user = self.users.get(spec["token"])
        if user is None:
            return {"error": "invalid bearer token"}
        return {
            "authenticated": True,
            "user": {"username": user, "uid": "7", "groups": ["readers"], "extra": {"k": ["v"]}},
        }

    def _access(self, spec: dict[str, Any]) -> dict[str, Any]:
        path = spec["nonResourceAttributes"]["path"]
        return {"allowed": (spec["user"], path) in self.allowed}

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Client]:
        """A connection to it, over a real socket."""
        app = web.Application()
        app.router.add_post(TOKEN_REVIEWS, self.answer)
        app.router.add_post(ACCESS_REVIEWS, self.answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            async with open_session() as session:
                yield Client(session, f"http://127.0.0.1:{runner.addresses[0][1]}")
        finally:
            await runner.cleanup()


@dataclass
class Client:
    """Posts, and raises where the answer is no success."""

    session: aiohttp.ClientSession
    server: str

    async def post(self, path: str, body: bytes) -> bytes:
        async with self.session.post(self.server + path, data=body) as response:
            response.raise_for_status()
            return await response.read()
