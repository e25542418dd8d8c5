"""Answers: objects, lists and tables in JSON, Status objects, and watches line by line."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from moorage.embedded.api.column import Column
from moorage.embedded.api.kind import ServedKind
from moorage.embedded.request_refusals import RequestRefused, bad_request
from moorage.embedded.store.object_store import Json, ObjectStore, StoredObject, encode
from moorage.embedded.store.queries import (
    ListRequest,
    ListResult,
    Selection,
    TableWatch,
    list_entries,
    read_version,
)

from .requests import AnswerForm, Query, WatchRequest

JSON = "application/json"

# Lists beyond this many objects are sent in pieces of as many, so that they are never in memory
# a second time as a whole.
_PIECE = 500


def json_bytes(body: bytes, code: int = 200) -> web.Response:
    return web.Response(body=body, status=code, content_type=JSON)


def json_answer(value: Any, code: int = 200) -> web.Response:
    return json_bytes(encode(value) + b"\n", code)


def refuse(refusal: RequestRefused) -> web.Response:
    response = json_answer(refusal.status, refusal.code)
    seconds = refusal.details.get("retryAfterSeconds")
    if seconds:
        response.headers["Retry-After"] = str(seconds)
    return response


def success_status(kind: ServedKind, name: str, uid: str = "") -> dict[str, Any]:
    """Returns the Status of a successful request."""
    details = {"name": name, "group": kind.group, "kind": kind.plural, "uid": uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def body_of(kind: ServedKind, entry: StoredObject) -> bytes:
    """Returns the JSON of an object in the form of its kind."""
    return entry.body if kind.view is None else encode(kind.view.outward(entry.object))


def list_head(kind_name: str, api_version: str, listed: ListResult) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(listed.version)}
    if listed.token:
        metadata["continue"] = listed.token
    if listed.remaining is not None:
        metadata["remainingItemCount"] = listed.remaining
    head = {"kind": kind_name, "apiVersion": api_version, "metadata": metadata}
    return encode(head)[:-1] + b',"items":['


async def send_list(
    request: web.BaseRequest, kind: ServedKind, listed: ListResult
) -> web.StreamResponse:
    """Sends a list of objects, in pieces if it is long."""
    head = list_head(f"{kind.kind}List", kind.api_version, listed)
    if len(listed.entries) <= _PIECE:
        return json_bytes(
            head + b",".join(body_of(kind, each) for each in listed.entries) + b"]}\n"
        )
    response = web.StreamResponse(headers={"Content-Type": JSON})
    await response.prepare(request)
    separator = head
    for piece in _pieces(listed.entries):
        await response.write(separator + b",".join(body_of(kind, each) for each in piece))
        separator = b","
    await response.write(b"]}\n")
    await response.write_eof()
    return response


def _pieces(entries: Sequence[StoredObject]) -> Iterator[Sequence[StoredObject]]:
    for start in range(0, len(entries), _PIECE):
        yield entries[start : start + _PIECE]


_INCLUDES = ("", "None", "Metadata", "Object")


def send_form(
    query: Query,
    kind: ServedKind,
    want: AnswerForm,
    entries: Sequence[StoredObject],
    listed: ListResult | None = None,
) -> web.Response:
    """Sends objects as a table or as metadata alone."""
    if want.form == "Table":
        return json_answer(_make_table(query, kind, want, entries, listed))
    items = [metadata_only(each.object, want) for each in entries]
    if listed is None:
        return json_answer(items[0])
    return json_answer(
        {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{want.version}",
            "metadata": _list_metadata(listed),
            "items": items,
        }
    )


def renderer_of(query: Query, kind: ServedKind, want: AnswerForm) -> Renderer:
    """Returns the function that renders the objects of a watch."""
    if want.form == "Table":
        return lambda entry: encode(_make_table(query, kind, want, [entry], None))
    if want.form:
        return lambda entry: encode(metadata_only(entry.object, want))
    return lambda entry: body_of(kind, entry)


def _make_table(
    query: Query,
    kind: ServedKind,
    want: AnswerForm,
    entries: Sequence[StoredObject],
    listed: ListResult | None,
) -> Json:
    include = query.get("includeObject", "")
    if include not in _INCLUDES:
        raise bad_request(f"unrecognized includeObject value: {include!r}")
    columns, now = kind.columns, datetime.now(UTC)
    metadata = _list_metadata(listed) if listed else {"resourceVersion": str(entries[0].version)}
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{want.version}",
        "metadata": metadata,
        "columnDefinitions": [each.definition for each in columns],
        "rows": [_row(kind, columns, each, include, now) for each in entries],
    }


def _row(
    kind: ServedKind, columns: Sequence[Column], entry: StoredObject, include: str, now: datetime
) -> Json:
    item = entry.object
    row: dict[str, Any] = {"cells": [each.cell(item, now) for each in columns]}
    if include == "Object":
        row["object"] = kind.view.outward(item) if kind.view else item
    elif include != "None":
        row["object"] = metadata_only(item, AnswerForm())
    return row


def metadata_only(item: Json, want: AnswerForm) -> Json:
    """Returns the metadata of an object in the form that is asked for."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{want.version}",
        "metadata": item["metadata"],
    }


def _list_metadata(listed: ListResult) -> Json:
    metadata: Json = {"resourceVersion": str(listed.version)}
    if listed.token:
        metadata["continue"] = listed.token
    if listed.remaining is not None:
        metadata["remainingItemCount"] = listed.remaining
    return metadata


#: An object as it is sent in an event.
Renderer = Callable[[StoredObject], bytes]

# A watch without a timeout ends after half an hour to an hour, so that not all end at once.
_SHORTEST_SECONDS = 1800


class WatchStream:
    """One watch that is being sent."""

    def __init__(
        self, store: ObjectStore, kind: ServedKind, selection: Selection, render: Renderer
    ) -> None:
        self._store = store
        self._kind = kind
        self._selection = selection
        self._render = render

    async def send(
        self, request: web.BaseRequest, asked: WatchRequest, bookmark_seconds: float
    ) -> web.StreamResponse:
        """Sends events until the client goes or the time is up."""
        watch, first = self._start(asked)
        await self._store.until_safe(watch.version)
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
        except RequestRefused as refusal:
            await response.write(_line("ERROR", encode(refusal.status)))
        await response.write_eof()
        return response

    def _start(self, asked: WatchRequest) -> tuple[TableWatch, bytes]:
        """Returns the watch, and the events of the objects that exist already."""
        version = read_version(asked.version)
        starts_with_list = not version if asked.initial is None else asked.initial
        if not starts_with_list:
            version = version or self._store.visible
            return TableWatch(self._store, self._kind.table, self._selection, version), b""
        page = ListRequest(version=asked.version)
        listed = list_entries(self._store, self._kind.table, self._selection, page)
        lines = [_line("ADDED", self._render(entry)) for entry in listed.entries]
        if asked.initial and asked.bookmarks:
            lines.append(self._bookmark(listed.version, {"k8s.io/initial-events-end": "true"}))
        return TableWatch(self._store, self._kind.table, self._selection, listed.version), b"".join(
            lines
        )

    async def _follow(
        self, response: web.StreamResponse, watch: TableWatch, bookmark_seconds: float | None
    ) -> None:
        while True:
            events = watch.ready()
            if events:
                lines = [_line(each.type, self._render(each.entry)) for each in events]
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
