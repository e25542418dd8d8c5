"""The HTTPS server: health, metrics, the configuration in force and the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from mooring.web import StatusPage

from .authorization import Authorizer, Denied
from .health import Check, HealthChecks
from .metrics import CONTENT_TYPE
from .tls_site import ServingSettings, tls_site

_PLAIN = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
# Nothing that is asked here has a body.
_MOST_BYTES = 2**16
_STALLED = "a decision takes too long: nothing can be read meanwhile\n"
_METRICS = {"Content-Type": CONTENT_TYPE}


@dataclass(frozen=True, slots=True)
class Content:
    """What the endpoints tell. Checks are by name; a path without any answers that it is there."""

    metrics: Callable[[], Awaitable[bytes]]
    resources: Callable[[], AsyncIterator[bytes]]
    configuration: Callable[[], bytes]
    healthz: Mapping[str, Check] = field(default_factory=dict)
    livez: Mapping[str, Check] = field(default_factory=dict)
    readyz: Mapping[str, Check] = field(default_factory=dict)
    #: None serves no page.
    page: StatusPage | None = None


@asynccontextmanager
async def serving(
    settings: ServingSettings, content: Content, authorizer: Authorizer
) -> AsyncIterator[int]:
    """Serves for as long as the context lasts; gives the port."""
    async with tls_site(application(content, authorizer), settings) as port:
        yield port


def application(content: Content, authorizer: Authorizer) -> web.Application:
    """The routes, behind the authorizer."""
    return guarded(content, _guard(authorizer, content.page))


def guarded(content: Content, guard: Middleware) -> web.Application:
    """The routes, behind whoever lets in."""
    app = web.Application(middlewares=[guard], client_max_size=_MOST_BYTES)
    if content.page is not None:
        content.page.mount(app)
    app.router.add_get("/metrics", _metrics(content))
    app.router.add_get("/metrics/resources", _resources(content), allow_head=False)
    app.router.add_get("/configz", _configuration(content))
    for name, checks in (
        ("healthz", content.healthz),
        ("livez", content.livez),
        ("readyz", content.readyz),
    ):
        health = HealthChecks(name, checks)
        app.router.add_get(f"/{name}", _health(health))
        app.router.add_get(f"/{name}/{{check}}", _health_check(health))
    return app


def _guard(authorizer: Authorizer, page: StatusPage | None) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        # Before it is known whether there is such a path: what is there is nobody's business.
        # The files of the page tell nothing, and a browser needs them to ask for a token.
        try:
            if page is None or not page.is_open(request.path):
                await authorizer.check(
                    request.path,
                    request.method.lower(),
                    request.headers.get("Authorization"),
                    request.remote or "",
                )
        except Denied as denied:
            return web.Response(status=denied.status, text=f"{denied.text}\n", headers=_PLAIN)
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return web.Response(status=404, text="404 page not found\n", headers=_PLAIN)
        except TimeoutError:
            return web.Response(status=503, text=_STALLED, headers=_PLAIN)

    return guard


def _metrics(content: Content) -> Handler:
    async def metrics(request: web.Request) -> web.StreamResponse:
        return web.Response(body=await content.metrics(), headers=_METRICS)

    return metrics


def _resources(content: Content) -> Handler:
    async def resources(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=_METRICS)
        await response.prepare(request)
        async for part in content.resources():
            await response.write(part)
        return response

    return resources


def _configuration(content: Content) -> Handler:
    async def configuration(request: web.Request) -> web.StreamResponse:
        return web.Response(body=content.configuration(), content_type="application/json")

    return configuration


def _health(health: HealthChecks) -> Handler:
    async def check_all(request: web.Request) -> web.StreamResponse:
        exclude = request.query.getall("exclude", [])
        found = health.all(verbose="verbose" in request.query, exclude=exclude)
        return web.Response(status=200 if found.ok else 500, text=found.text, headers=_PLAIN)

    return check_all


def _health_check(health: HealthChecks) -> Handler:
    async def check_one(request: web.Request) -> web.StreamResponse:
        name = request.match_info["check"]
        if name not in health:
            raise web.HTTPNotFound
        found = health.one(name)
        return web.Response(status=200 if found.ok else 500, text=found.text, headers=_PLAIN)

    return check_one
