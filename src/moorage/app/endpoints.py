"""The endpoints of the server: health, metrics, configuration, /statusz, /flagz and the page.

Before there is an engine, the server answers that it is alive and not ready.
"""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

import moorage
from moorage.config import Configuration, FeatureGates, ProfileConfiguration
from moorage.config.configuration import API_VERSION, KIND, SchedulerSettings
from moorage.config.extenders import ExtenderTLS
from moorage.web import StatusPage

from .authorization import Authorizer, Caller, Denied, read_certificate
from .https_site import ServingSettings, serve_https
from .logs import make_log
from .metric_text import CONTENT_TYPE

_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility "
    "guarantees and is for debugging purposes only."
)

_PATHS = ("/configz", "/healthz", "/livez", "/metrics", "/metrics/resources", "/readyz")


def make_pages(
    gates: FeatureGates, flags: Mapping[str, object], clock: Callable[[], datetime] | None = None
) -> dict[str, Callable[[], str]]:
    """Returns the pages by path, without those whose feature gate is off.

    The uptime counts from this call.
    """
    now = clock or (lambda: datetime.now(UTC))
    started = now()
    pages: dict[str, Callable[[], str]] = {}
    if gates["ComponentStatusz"]:
        pages["/statusz"] = lambda: write_statusz(
            started, now(), gates.version.name, (*_PATHS, *pages)
        )
    if gates["ComponentFlagz"]:
        pages["/flagz"] = lambda: write_flagz(flags)
    return pages


def write_statusz(started: datetime, now: datetime, emulated: str, paths: Iterable[str]) -> str:
    """Writes since when the process runs, its version, and the paths that it serves."""
    minutes, seconds = divmod(int((now - started).total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    lines = (
        f"Started: {started:%a %b %e %H:%M:%S UTC %Y}",
        f"Up: {hours} hr {minutes:02} min {seconds:02} sec",
        f"Python version: {platform.python_version()}",
        f"Binary version: {moorage.__version__}",
        f"Emulation version: {emulated}",
        f"Paths: {' '.join(sorted(paths))}",
    )
    return _write_page("statusz", lines)


def write_flagz(flags: Mapping[str, object]) -> str:
    """Writes every flag with its value, sorted by name."""
    return _write_page("flags", (f"{name}={value}" for name, value in sorted(flags.items())))


def _write_page(title: str, lines: Iterable[str]) -> str:
    return "\n".join(("", f"moorage {title}", _WARNING, "", *lines, ""))


_PLAIN = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
# Nothing that is asked here has a body.
_MOST_BYTES = 2**16
_STALLED = "a decision takes too long: nothing can be read meanwhile\n"
_METRICS = {"Content-Type": CONTENT_TYPE}

LOG = make_log("moorage.health")

#: None while all is well, else what is wrong.
Check = Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class Content:
    """The content of the endpoints.

    Checks are by name; a path without any answers that it exists.
    """

    metrics: Callable[[], Awaitable[bytes]]
    resources: Callable[[], AsyncIterator[bytes]]
    configuration: Callable[[], bytes]
    healthz: Mapping[str, Check] = field(default_factory=dict)
    livez: Mapping[str, Check] = field(default_factory=dict)
    readyz: Mapping[str, Check] = field(default_factory=dict)
    #: Pages of plain text by path, such as /statusz.
    texts: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    #: None serves no page.
    page: StatusPage | None = None


@asynccontextmanager
async def serve_endpoints(
    settings: ServingSettings, content: Content, authorizer: Authorizer
) -> AsyncIterator[int]:
    """Serves for as long as the context lasts; yields the port."""
    async with serve_https(application(content, authorizer), settings) as port:
        yield port


def application(content: Content, authorizer: Authorizer) -> web.Application:
    """Makes the application: all routes, behind the authorizer."""
    return build_routes(content, _guard(authorizer, content.page))


def build_routes(content: Content, guard: Middleware) -> web.Application:
    """Makes the application: all routes, behind a function that checks who may read them."""
    app = web.Application(middlewares=[guard], client_max_size=_MOST_BYTES)
    if content.page is not None:
        content.page.mount(app)
    app.router.add_get("/metrics", _metrics(content))
    app.router.add_get("/metrics/resources", _resources(content), allow_head=False)
    app.router.add_get("/configz", _configuration(content))
    for path, write in content.texts.items():
        app.router.add_get(path, _text(write))
    for name, checks in (
        ("healthz", content.healthz),
        ("livez", content.livez),
        ("readyz", content.readyz),
    ):
        health = HealthChecks(name, checks)
        app.router.add_get(f"/{name}", health_route(health))
        app.router.add_get(f"/{name}/{{check}}", _health_check(health))
    return app


def _guard(authorizer: Authorizer, page: StatusPage | None) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        # Before it is known whether there is such a path: what is there is nobody's business.
        # The files of the page tell nothing, and a browser needs them to ask for a token.
        try:
            if page is None or not page.is_open(request.path):
                caller = Caller(
                    request.headers.get("Authorization"),
                    read_certificate(request.get_extra_info("peercert")),
                    request.remote or "",
                )
                await authorizer.check(request.path, request.method.lower(), caller)
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


def _text(write: Callable[[], str]) -> Handler:
    async def text(request: web.Request) -> web.StreamResponse:
        return web.Response(text=write(), headers=_PLAIN)

    return text


def health_route(health: HealthChecks) -> Handler:
    """Makes the route that answers with all checks of a path."""

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


def ping() -> None:
    """A check that always passes, since the process answers."""


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """The outcome of some checks: the text, and whether all passed."""

    ok: bool
    text: str


class HealthChecks:
    """The checks behind a path such as /readyz, by name, in order."""

    def __init__(self, name: str, checks: Mapping[str, Check]) -> None:
        self._name = name
        self._checks = dict(checks) or {"ping": ping}

    def __contains__(self, check: str) -> bool:
        return check in self._checks

    def one(self, check: str) -> HealthAnswer:
        """Runs one check; its answer says what is wrong."""
        wrong = self._problem(check)
        return HealthAnswer(
            wrong is None, "ok" if wrong is None else f"internal server error: {wrong}\n"
        )

    def all(self, *, verbose: bool = False, exclude: Collection[str] = ()) -> HealthAnswer:
        """Runs all checks. Problems are only logged, because everybody may read this."""
        lines = []
        failed = {}
        for check in self._checks:
            wrong = None if check in exclude else self._problem(check)
            if wrong is not None:
                failed[check] = wrong
                lines.append(f"[-]{check} failed: reason withheld\n")
            else:
                lines.append(
                    f"[+]{check} excluded: ok\n" if check in exclude else f"[+]{check} ok\n"
                )
        unknown = ",".join(f'"{each}"' for each in sorted({*exclude} - {*self._checks}))
        if unknown:
            lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}\n")
        if failed:
            LOG.warning("Health check failed", path=f"/{self._name}", **failed)
            return HealthAnswer(False, f"{''.join(lines)}{self._name} check failed\n")
        return HealthAnswer(
            True, f"{''.join(lines)}{self._name} check passed\n" if verbose else "ok"
        )

    def _problem(self, check: str) -> str | None:
        try:
            return self._checks[check]()
        except Exception as error:  # noqa: BLE001 - a check that breaks is a check that fails
            return f"{type(error).__name__}: {error}"


def configz(configuration: Configuration) -> bytes:
    """Returns the configuration as JSON, under kube-scheduler's name for it."""
    return msgspec.json.encode({"componentconfig": spell_out(configuration)})


def spell_out(configuration: Configuration) -> dict[str, Any]:
    """Returns the configuration as a file would write it, with all defaults."""
    document: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    for each in msgspec.structs.fields(SchedulerSettings):
        value = getattr(configuration, each.name)
        if value is not None:
            document[each.encode_name] = _spell_out_value(value)
    document["profiles"] = [_profile(each) for each in configuration.profiles]
    return document


def _profile(profile: ProfileConfiguration) -> dict[str, Any]:
    # Nothing is left to the defaults, so these are switched off as a whole.
    plugins: dict[str, Any] = {"multiPoint": {"disabled": [{"name": "*"}]}}
    for point, enabled in profile.points.items():
        plugins[point] = {
            "enabled": [{"name": each.name, "weight": each.weight} for each in enabled]
        }
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": plugins,
        "pluginConfig": [
            {"name": name, "args": _spell_out_value(args)}
            for name, args in sorted(profile.args.items())
            if args is not None
        ],
    }


def _spell_out_value(value: Any) -> Any:
    """Returns structs with all their fields, defaults included. Keys are left out."""
    if isinstance(value, ExtenderTLS):
        value = value.hide_key()
    if isinstance(value, msgspec.Struct):
        return {
            field.encode_name: _spell_out_value(getattr(value, field.name))
            for field in msgspec.structs.fields(value)
            if getattr(value, field.name) is not None
        }
    if isinstance(value, list | tuple):
        return [_spell_out_value(each) for each in value]
    if isinstance(value, dict):
        return {key: _spell_out_value(each) for key, each in value.items()}
    return msgspec.to_builtins(value, enc_hook=str)


_WAITING = "it waits for the API server, whose version decides what is followed"


@asynccontextmanager
async def serve_early_probes(settings: ServingSettings) -> AsyncIterator[int]:
    """Serves health checks for as long as the context lasts; yields the port.

    They say nothing about the cluster. No API server can review a token yet, so all other paths are
    unavailable.
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
