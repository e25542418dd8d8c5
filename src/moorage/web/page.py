"""The page as an aiohttp application, to be mounted under a prefix of another server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.resources import files
from time import monotonic
from typing import TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from moorage.engine import Engine
from moorage.engine.explain import NoSuchNode
from moorage.objects.resources import CPU

from .details import (
    describe_node,
    describe_pod,
    explain_group,
    explain_pod,
    find,
    find_pod,
    tag_answers,
)
from .engine_reads import Busy, KeptAnswers, PacedRunner, Read, at_once, in_slices
from .hub import Hub, TooManyViewers
from .occupants import group_by_pods
from .overview import (
    OWNERS,
    count_devices,
    describe_batching,
    group_nodes,
    list_gangs,
    list_labels,
    list_sections,
    locate_pods,
    measure_usage,
    show_section,
)

_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}

#: The page itself.
INDEX = "index.html"

T = TypeVar("T")

#: Tells of a pod, by namespace and name, as JSON; None if it is not known.
Explain = Callable[[str, str], bytes | None]

#: Where the page is served, unless it is said otherwise.
PREFIX = "/ui/"

# Nothing from elsewhere, nothing inline, and no text ever becomes markup.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_JSON = "application/json"

# After this time a stream ends and the page asks again, so that a right that was taken away ends.
_LONGEST_STREAM_SECONDS = 600.0

_LONGEST_SEARCH = 256

# By then some waiting requests have had their turn.
_RETRY_SECONDS = 1


class StatusPage:
    """The page over an engine. Its files are open to everybody; its data are not."""

    def __init__(
        self,
        engine: Engine,
        explain: Explain | None = None,
        clock: Callable[[], float] = monotonic,
        read: Read = in_slices,
    ) -> None:
        """The clock must be the one that the engine runs by."""
        self._engine = engine
        self._clock = clock
        self._read = read
        self._turns = PacedRunner(read=read)
        self._explain = explain
        self._kept = KeptAnswers(self._turns)
        self._hub = Hub(engine, read)
        self._files = _read_files()
        self._open = frozenset({"", *(f"static/{name}" for name in self._files)})

    def mount(self, parent: web.Application, prefix: str = PREFIX) -> None:
        """Adds the page to a server, under a prefix that ends in a slash."""

        async def to_page(request: web.Request) -> web.StreamResponse:
            raise web.HTTPPermanentRedirect(prefix)

        if prefix != "/":
            parent.router.add_get(prefix.rstrip("/"), to_page)
        parent.add_subapp(prefix, self.application())

    def is_open(self, path: str, prefix: str = PREFIX) -> bool:
        """Whether a path is one of the page's files, which contain nothing of the cluster."""
        return path == prefix.rstrip("/") or (
            path.startswith(prefix) and path.removeprefix(prefix) in self._open
        )

    def application(self) -> web.Application:
        """Makes the application. All its routes only read."""
        app = web.Application()
        app.router.add_get("/", _file(self._files[INDEX]))
        for name, file in self._files.items():
            app.router.add_get(f"/static/{name}", _file(file))
        app.router.add_get("/api/snapshot", self._snapshot)
        app.router.add_get("/api/stream", self._stream, allow_head=False)
        app.router.add_get("/api/find", self._find)
        app.router.add_get("/api/nodes/{name}", self._node)
        app.router.add_get("/api/pods/{namespace}/{name}", self._pod)
        app.router.add_get("/api/labels", self._labels, allow_head=False)
        app.router.add_get("/api/usage", self._usage, allow_head=False)
        app.router.add_get("/api/occupants", self._occupants, allow_head=False)
        app.router.add_get("/api/gangs", self._gangs, allow_head=False)
        app.router.add_get("/api/sections", self._sections)
        app.router.add_get("/api/sections/{name}", self._section, allow_head=False)
        app.router.add_get("/api/devices", self._devices, allow_head=False)
        app.router.add_get("/api/batching", self._batching)
        app.router.add_get("/api/explain/{namespace}/{name}", self._explain_pod, allow_head=False)
        app.router.add_get("/api/podgroups/{namespace}/{name}", self._group, allow_head=False)
        app.on_response_prepare.append(_protect)
        app.on_shutdown.append(self._let_go)
        app.cleanup_ctx.append(self._running)
        return app

    async def _running(self, app: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(self._hub.run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def _let_go(self, app: web.Application) -> None:
        # A server waits for its answers to end before it stops.
        self._hub.close()

    async def _snapshot(self, request: web.Request) -> web.StreamResponse:
        lines = await self._hub.snapshot()
        return _json(b"[" + b",".join(lines) + b"]")

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        try:
            async with self._hub.viewer() as lines, asyncio.timeout(_LONGEST_STREAM_SECONDS):
                await response.prepare(request)
                while (text := await lines.get()) is not None:
                    await response.write(text)
        except TooManyViewers:
            raise web.HTTPServiceUnavailable(text="too many viewers\n") from None
        except (TimeoutError, ConnectionError):
            # The page asks again.
            return response
        return response

    async def _find(self, request: web.Request) -> web.StreamResponse:
        text = request.query.get("text", "").strip()[:_LONGEST_SEARCH]
        return _json(await self._read(find(self._engine, text)))

    async def _node(self, request: web.Request) -> web.StreamResponse:
        work = partial(describe_node, self._engine, request.match_info["name"])
        return _json(await self._read(at_once(work)))

    async def _pod(self, request: web.Request) -> web.StreamResponse:
        named, wanted = request.match_info, request.if_none_match
        if wanted:
            tag = await self._read(at_once(partial(tag_answers, self._engine)))
            if any(each.value == tag for each in wanted):
                return web.Response(status=304, headers={"ETag": f'"{tag}"'})

        def work() -> Generator[None, None, tuple[str, bytes | None]]:
            tag = tag_answers(self._engine)
            found = yield from self._describe_pod(named["namespace"], named["name"])
            return tag, found

        tag, found = await self._in_turn(work())
        answer = _json(found)
        answer.etag = tag
        return answer

    def _describe_pod(self, namespace: str, name: str) -> Generator[None, None, bytes | None]:
        if self._explain is not None:
            return at_once(partial(self._explain, namespace, name))
        return describe_pod(self._engine, namespace, name, self._clock())

    async def _labels(self, request: web.Request) -> web.StreamResponse:
        key = request.query.get("key", "")[:_LONGEST_SEARCH]
        steps = partial(group_nodes, key=key) if key else list_labels
        return await self._kept_answer(request, partial(steps, self._engine))

    async def _occupants(self, request: web.Request) -> web.StreamResponse:
        resource = request.query.get("resource", CPU)[:_LONGEST_SEARCH]
        steps = partial(group_by_pods, self._engine, _read_by(request), resource)
        return await self._kept_answer(request, steps)

    async def _usage(self, request: web.Request) -> web.StreamResponse:
        by = _read_by(request)
        name = request.query.get("name", "")[:_LONGEST_SEARCH]
        if name:
            return await self._kept_answer(request, partial(locate_pods, self._engine, by, name))
        return await self._kept_answer(request, partial(measure_usage, self._engine, by))

    async def _gangs(self, request: web.Request) -> web.StreamResponse:
        return await self._kept_answer(request, partial(list_gangs, self._engine))

    async def _sections(self, request: web.Request) -> web.StreamResponse:
        return _json(await self._read(at_once(partial(list_sections, self._engine))))

    async def _section(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"][:_LONGEST_SEARCH]
        return await self._kept_answer(request, partial(show_section, self._engine, name))

    async def _devices(self, request: web.Request) -> web.StreamResponse:
        return await self._kept_answer(request, partial(count_devices, self._engine))

    async def _batching(self, request: web.Request) -> web.StreamResponse:
        return _json(await self._read(at_once(partial(describe_batching, self._engine))))

    async def _kept_answer(
        self, request: web.Request, steps: Callable[[], Generator[None, None, bytes]]
    ) -> web.StreamResponse:
        return _json(await _unless_busy(self._kept.answer(request.path_qs, steps)))

    async def _explain_pod(self, request: web.Request) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        node = request.query.get("node", "")
        pod = await self._read(find_pod(self._engine, namespace, name))
        if pod is None:
            return _missing(f"pod {namespace}/{name}: this scheduler knows no such pod")

        steps = explain_pod(self._engine, pod, node, self._clock())
        try:
            return _json(await self._in_turn(steps))
        except NoSuchNode:
            return _missing(f"node {node}: there is no such node")

    async def _group(self, request: web.Request) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        work = partial(explain_group, self._engine, namespace, name)
        found = await self._in_turn(at_once(work))
        if found is None:
            return _missing(f"podgroup {namespace}/{name}: this scheduler knows no such group")
        return _json(found)

    async def _in_turn(self, steps: Generator[None, None, T]) -> T:
        """Runs an explanation, one at a time and with pauses: decisions wait for its steps."""
        return await _unless_busy(self._turns.run(steps))


def _read_by(request: web.Request) -> str:
    """Reads the parameter by which pods are grouped."""
    by = request.query.get("by", "namespace")
    if by not in OWNERS:
        raise web.HTTPBadRequest(text=f"by: one of {', '.join(OWNERS)}\n")
    return by


async def _unless_busy(answer: Awaitable[T]) -> T:
    try:
        return await answer
    except Busy:
        raise web.HTTPTooManyRequests(
            text="too many requests at once: try again\n",
            headers={"Retry-After": str(_RETRY_SECONDS)},
        ) from None


def _json(body: bytes | None) -> web.Response:
    if body is None:
        raise web.HTTPNotFound(text="not found\n")
    return web.Response(body=body, content_type=_JSON)


def _missing(message: str) -> web.Response:
    """Makes the answer for an object that does not exist, as Kubernetes words it."""
    status = {"kind": "Status", "reason": "NotFound", "code": 404, "message": message}
    return web.Response(status=404, body=msgspec.json.encode(status), content_type=_JSON)


def _file(file: PageFile) -> Handler:
    async def serve(request: web.Request) -> web.StreamResponse:
        response = web.Response(body=file.body, content_type=file.content_type, charset="utf-8")
        response.headers["Cache-Control"] = "no-cache"
        response.etag = file.tag
        wanted = request.if_none_match
        if wanted and any(each.value == file.tag for each in wanted):
            return web.Response(status=304, headers={"ETag": response.headers["ETag"]})
        return response

    return serve


async def _protect(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file, and the tag by which a browser knows whether it has it."""

    body: bytes
    content_type: str
    tag: str


def _read_files() -> dict[str, PageFile]:
    """Reads all files. They are few and small, so they are kept in memory."""
    found = {}
    for each in files("moorage.web").joinpath("static").iterdir():
        kind = _TYPES.get(f".{each.name.rpartition('.')[2]}")
        if kind is not None:
            body = each.read_bytes()
            found[each.name] = PageFile(body, kind, sha256(body).hexdigest()[:16])
    return found
