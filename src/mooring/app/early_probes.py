"""What a scheduler answers before it has an engine: that it is alive, and not ready."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler

from .endpoints import HealthChecks, health_route, ping
from .https_site import ServingSettings, serve_https

_WAITING = "it waits for the API server, whose version decides what is followed"


@asynccontextmanager
async def serve_early_probes(settings: ServingSettings) -> AsyncIterator[int]:
    """Serves health checks for as long as the context lasts; gives the port.

    They tell nothing of the cluster. There is nobody yet who could review a token, so whatever else
    is asked for is not available.
    """
    app = web.Application(middlewares=[_refuse])
    alive = {"ping": ping}
    for name, checks in (
        ("healthz", alive),
        ("livez", alive),
        ("readyz", {**alive, "informer-sync": lambda: _WAITING}),
    ):
        app.router.add_get(f"/{name}", health_route(HealthChecks(name, checks)))
    async with serve_https(app, settings, is_lasting=False) as port:
        yield port


@web.middleware
async def _refuse(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return web.Response(status=503, text=f"{_WAITING}\n")
