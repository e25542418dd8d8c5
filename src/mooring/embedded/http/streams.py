"""Watches over HTTP: one line per event, the same bytes to everyone who watches."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from aiohttp import web

from mooring.embedded.errors import Refused
from mooring.embedded.kinds import Kind
from mooring.embedded.listing import Page, list_entries, read_version
from mooring.embedded.selection import Selection
from mooring.embedded.store import Store
from mooring.embedded.tables import Entry, encode
from mooring.embedded.watching import Watch

from .answers import JSON
from .asking import Watching

#: An object as it is sent in an event.
Shown = Callable[[Entry], bytes]

# A watch without a timeout ends after half an hour to an hour, so that not all end at once.
_SHORTEST_SECONDS = 1800


class Stream:
    """One watch that is being sent."""

    def __init__(self, store: Store, kind: Kind, selection: Selection, shown: Shown) -> None:
        self._store = store
        self._kind = kind
        self._selection = selection
        self._shown = shown

    async def send(
        self, request: web.BaseRequest, asked: Watching, bookmark_seconds: float
    ) -> web.StreamResponse:
        """Tells what happens until the client goes or the time is up."""
        watch, first = self._start(asked)
        await self._store.until_settled(watch.version)
        response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(first)
        seconds = asked.timeout_seconds or _SHORTEST_SECONDS * random.uniform(1, 2)
        try:
            async with asyncio.timeout(seconds):
                await self._follow(response, watch, bookmark_seconds if asked.bookmarks else None)
        except TimeoutError:
            pass
        except Refused as refusal:
            await response.write(_line("ERROR", encode(refusal.status)))
        await response.write_eof()
        return response

    def _start(self, asked: Watching) -> tuple[Watch, bytes]:
        """The watch, and what it tells of what is there already."""
        version = read_version(asked.version)
        told_first = not version if asked.initial is None else asked.initial
        if not told_first:
            version = version or self._store.visible
            return Watch(self._store, self._kind, self._selection, version), b""
        page = Page(version=asked.version)
        listed = list_entries(self._store, self._kind, self._selection, page)
        lines = [_line("ADDED", self._shown(entry)) for entry in listed.entries]
        if asked.initial and asked.bookmarks:
            lines.append(self._bookmark(listed.version, {"k8s.io/initial-events-end": "true"}))
        return Watch(self._store, self._kind, self._selection, listed.version), b"".join(lines)

    async def _follow(
        self, response: web.StreamResponse, watch: Watch, bookmark_seconds: float | None
    ) -> None:
        while True:
            events = watch.ready()
            if events:
                lines = [_line(each.type, self._shown(each.entry)) for each in events]
                await response.write(b"".join(lines))
            try:
                async with asyncio.timeout(bookmark_seconds):
                    await watch.wait()
            except TimeoutError:
                await response.write(self._bookmark(watch.version, None))

    def _bookmark(self, version: int, annotations: dict[str, str] | None) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(version)}
        if annotations:
            metadata["annotations"] = annotations
        kind = self._kind
        item = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        return _line("BOOKMARK", encode(item))


def _line(type_: str, body: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), body)
