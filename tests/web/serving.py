"""A page over an engine on a port of this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Middleware

from moorage.engine import Engine
from moorage.web import Explain, StatusPage


@asynccontextmanager
async def serving(
    engine: Engine,
    *,
    explain: Explain | None = None,
    guards: Sequence[Middleware] = (),
    page: StatusPage | None = None,
    port: int = 0,
) -> AsyncIterator[str]:
    """Serves for as long as the context lasts; gives the address of the page."""
    app = web.Application(middlewares=guards)
    (page or StatusPage(engine, explain)).mount(app)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, reuse_address=True)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/ui/"
    finally:
        await runner.cleanup()
