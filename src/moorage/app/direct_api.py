"""Asks a store in the same process as if it were an API server: same paths, bodies, refusals.

So code that talks to an API server runs against the store without sockets and without change.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from random import uniform

from moorage.client.api import Params
from moorage.client.api_errors import ApiError
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.api.request_options import DeleteOptions, WriteOptions
from moorage.embedded.http import requests
from moorage.embedded.http.answers import body_of, list_head
from moorage.embedded.http.requests import Address, apply_patch, locate, read_object, read_patch
from moorage.embedded.kinds.subresources import bind, evict
from moorage.embedded.request_refusals import RequestRefused, method_not_allowed
from moorage.embedded.store.object_store import StoredObject, encode
from moorage.embedded.store.queries import TableWatch, list_entries, read_version

_JSON = "application/json"
_DONE = encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
_WRITE = WriteOptions(manager="moorage")


class DirectApi:
    """Answers requests from the store itself."""

    def __init__(self, api: ObjectApi) -> None:
        self._api = api

    async def get(self, path: str, params: Params | None = None) -> bytes:
        with _refusals():
            at = self._at(path)
            if at.name:
                entry = self._api.get(at.kind, at.namespace, at.name)
                return await self._show(at, entry)
            return await self._list(at, _query(params))

    async def post(self, path: str, body: bytes, params: Params | None = None) -> bytes:
        with _refusals():
            at, raw = self._at(path), read_object(_JSON, body)
            if at.part == "binding":
                bind(self._api, at.namespace, at.name, raw, _WRITE)
            elif at.part == "eviction":
                evict(self._api, at.namespace, at.name, raw, _WRITE)
            elif at.name:
                raise method_not_allowed(at.kind.resource, "POST")
            else:
                return await self._show(at, self._api.create(at.kind, at.namespace, raw, _WRITE))
            await self._api.store.until_safe(self._api.store.version)
            return _DONE

    async def put(self, path: str, body: bytes) -> bytes:
        with _refusals():
            at = self._at(path)
            return await self._write(at, read_object(_JSON, body))

    async def patch(self, path: str, body: bytes, content_type: str) -> bytes:
        with _refusals():
            at = self._at(path)
            change = read_patch(content_type, body, at.kind.schema)
            stored = self._api.get(at.kind, at.namespace, at.name).object
            return await self._write(at, apply_patch(at.kind, stored, change))

    async def delete(self, path: str, body: bytes | None = None) -> bytes:
        with _refusals():
            at = self._at(path)
            options = DeleteOptions.read(read_object(_JSON, body) if body else {})
            done = self._api.delete(at.kind, at.namespace, at.name, options)
            return await self._show(at, done.entry)

    async def watch(self, path: str, params: Params) -> AsyncGenerator[bytes, None]:
        """Yields the lines of a watch, until its time is up."""
        query, store = _query(params), self._api.store
        with _refusals():
            at = self._at(path)
            selection = requests.read_selection(query, at.kind, at.namespace)
            asked = requests.read_watch_request(query)
            watch = TableWatch(store, at.kind.table, selection, read_version(asked.version))
            seconds = asked.timeout_seconds or uniform(1800, 3600)
            end = asyncio.get_running_loop().time() + seconds
            while True:
                for event in watch.ready():
                    body = body_of(at.kind, event.entry)
                    yield b'{"type":"%s","object":%s}' % (event.type.encode(), body)
                try:
                    async with asyncio.timeout_at(end):
                        await watch.wait()
                except TimeoutError:
                    return

    def _at(self, path: str) -> Address:
        return locate(self._api.kinds, path)

    async def _list(self, at: Address, query: dict[str, str]) -> bytes:
        selection = requests.read_selection(query, at.kind, at.namespace)
        listed = list_entries(
            self._api.store, at.kind.table, selection, requests.read_list_request(query)
        )
        await self._api.store.until_safe(listed.version)
        items = b",".join(body_of(at.kind, each) for each in listed.entries)
        return list_head(f"{at.kind.kind}List", at.kind.api_version, listed) + items + b"]}"

    async def _write(self, at: Address, raw: dict[str, object]) -> bytes:
        write = self._api.update_status if at.part == "status" else self._api.update
        return await self._show(at, write(at.kind, at.namespace, at.name, raw, _WRITE))

    async def _show(self, at: Address, entry: StoredObject) -> bytes:
        await self._api.store.until_safe(entry.version)
        return body_of(at.kind, entry)


@contextmanager
def _refusals() -> Iterator[None]:
    """Turns refusals of the store into the errors that an API server's refusals raise."""
    try:
        yield
    except RequestRefused as refusal:
        seconds = refusal.details.get("retryAfterSeconds")
        raise ApiError(refusal.code, refusal.reason, refusal.message, seconds) from refusal


def _query(params: Params | None) -> dict[str, str]:
    return {key: str(value) for key, value in (params or {}).items()}
