"""Answers: JSON bodies, long lists in pieces, and Status objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aiohttp import web

from mooring.embedded.errors import Refused
from mooring.embedded.kinds import Kind
from mooring.embedded.listing import Listed
from mooring.embedded.tables import Entry, encode

JSON = "application/json"

# Lists beyond this many objects are sent in pieces of as many, so that they are never in memory
# a second time as a whole.
_PIECE = 500


def json_bytes(body: bytes, code: int = 200) -> web.Response:
    return web.Response(body=body, status=code, content_type=JSON)


def json_answer(value: Any, code: int = 200) -> web.Response:
    return json_bytes(encode(value) + b"\n", code)


def failure(refusal: Refused) -> web.Response:
    response = json_answer(refusal.status, refusal.code)
    seconds = refusal.details.get("retryAfterSeconds")
    if seconds:
        response.headers["Retry-After"] = str(seconds)
    return response


def success(kind: Kind, name: str, uid: str = "") -> dict[str, Any]:
    """The Status of what was done."""
    details = {"name": name, "group": kind.group, "kind": kind.plural, "uid": uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def body_of(kind: Kind, entry: Entry) -> bytes:
    """An object as clients of a kind see it."""
    return entry.body if kind.view is None else encode(kind.view.outward(entry.object))


def list_head(kind_name: str, api_version: str, listed: Listed) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(listed.version)}
    if listed.token:
        metadata["continue"] = listed.token
    if listed.remaining is not None:
        metadata["remainingItemCount"] = listed.remaining
    head = {"kind": kind_name, "apiVersion": api_version, "metadata": metadata}
    return encode(head)[:-1] + b',"items":['


async def send_list(request: web.BaseRequest, kind: Kind, listed: Listed) -> web.StreamResponse:
    """A list of objects, in pieces if it is long."""
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


def _pieces(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    for start in range(0, len(entries), _PIECE):
        yield entries[start : start + _PIECE]
