"""The verbs on addresses of objects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from mooring.embedded.api import Api
from mooring.embedded.applying import apply_object
from mooring.embedded.deleting import delete, delete_all
from mooring.embedded.errors import forbidden_field, method_not_allowed
from mooring.embedded.listing import list_entries
from mooring.embedded.options import Delete, Write, refuse_options
from mooring.embedded.tables import Entry
from mooring.embedded.wire import Json

from . import asking
from .answers import body_of, json_answer, json_bytes, send_list, success
from .checking import check_fields, check_type
from .forms import send_form, shown_as
from .media import media_of, read_object, wanted
from .patches import APPLY, patched, read_patch
from .paths import Address
from .streams import Stream

# What Kubernetes calls the options of a request.
_OPTIONS = {"PATCH": "PatchOptions", "PUT": "UpdateOptions"}

Verb = Callable[[web.BaseRequest, Address], Awaitable[web.StreamResponse]]


class Verbs:
    """Answers requests for objects and collections of objects."""

    def __init__(self, api: Api, bookmark_seconds: float) -> None:
        self._api = api
        self._bookmark_seconds = bookmark_seconds

    async def answer(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        """What a request for an object or a collection gets."""
        if at.name:
            verbs: dict[str, tuple[str, Verb]] = {
                "GET": ("get", self._get),
                "PUT": ("update", self._update),
                "PATCH": ("patch", self._patch),
                "DELETE": ("delete", self._delete),
            }
        else:
            verbs = {
                "GET": ("list", self._list),
                "POST": ("create", self._create),
                "DELETE": ("deletecollection", self._delete_all),
            }
        name, verb = verbs.get(request.method, ("", self._get))
        if name not in at.kind.verbs:
            raise method_not_allowed(at.kind.resource, request.method)
        return await verb(request, at)

    async def answer_part(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        """What a request for the status of an object, or another part of its form, gets."""
        verbs: dict[str, tuple[str, Verb]] = {
            "GET": ("get", self._get),
            "PUT": ("update", self._update),
            "PATCH": ("patch", self._patch),
        }
        name, verb = verbs.get(request.method, ("", self._get))
        if name not in at.kind.subresources[at.part].verbs:
            raise method_not_allowed(f"{at.kind.resource}/{at.part}", request.method)
        return await verb(request, at)

    async def _get(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        if asking.flag(request.query, "watch"):
            return await self._watch(request, at)
        entry = self._api.get(at.kind, at.namespace, at.name)
        return await self._show(request, at, entry)

    async def _show(
        self,
        request: web.BaseRequest,
        at: Address,
        entry: Entry,
        code: int = 200,
        warnings: Sequence[str] = (),
    ) -> web.StreamResponse:
        want = wanted(request.headers.get("Accept", ""))
        await self._api.store.until_settled(entry.version)
        if want.form:
            return send_form(request.query, at.kind, want, [entry])
        response = json_bytes(body_of(at.kind, entry), code)
        for warning in warnings:
            text = warning.encode("unicode_escape").decode().replace('"', '\\"')
            response.headers.add("Warning", f'299 - "{text}"')
        return response

    async def _list(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        if asking.flag(request.query, "watch"):
            return await self._watch(request, at)
        want = wanted(request.headers.get("Accept", ""))
        selection = asking.selection(request.query, at.kind, at.namespace)
        store = self._api.store
        listed = list_entries(store, at.kind, selection, asking.page(request.query))
        await store.until_settled(listed.version)
        if want.form:
            return send_form(request.query, at.kind, want, listed.entries, listed)
        return await send_list(request, at.kind, listed)

    async def _watch(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        want = wanted(request.headers.get("Accept", ""))
        selection = asking.selection(request.query, at.kind, at.namespace, at.name)
        shown = shown_as(request.query, at.kind, want)
        stream = Stream(self._api.store, at.kind, selection, shown)
        return await stream.send(request, asking.watching(request.query), self._bookmark_seconds)

    async def _create(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        raw, warnings = await self._read(request, at)
        if at.kind.namespaced and not at.namespace:
            raise method_not_allowed(at.kind.resource, request.method)
        entry = self._api.create(at.kind, at.namespace, raw, asking.write(request.query))
        return await self._show(request, at, entry, 201, warnings)

    async def _update(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        raw, warnings = await self._read(request, at)
        options = _write(request, at)
        write = self._api.update_status if at.part == "status" else self._api.update
        entry = write(at.kind, at.namespace, at.name, raw, options)
        return await self._show(request, at, entry, 200, warnings)

    async def _patch(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        content_type, body = request.headers.get("Content-Type", ""), await request.read()
        options = _write(request, at)
        if media_of(content_type) in APPLY:
            return await self._apply(request, at, options, read_object(content_type, body))
        if "force" in request.query:
            fault = forbidden_field("force", "may not be specified for non-apply patch")
            refuse_options("PatchOptions", [fault])
        change = read_patch(content_type, body, at.kind.schema)
        stored = self._api.get(at.kind, at.namespace, at.name).object
        raw = patched(at.kind, stored, change)
        check_type(at.kind, raw)
        warnings = check_fields(request.query, at.kind, raw)
        write = self._api.update_status if at.part == "status" else self._api.update
        entry = write(at.kind, at.namespace, at.name, raw, options)
        return await self._show(request, at, entry, 200, warnings)

    async def _apply(
        self, request: web.BaseRequest, at: Address, options: Write, raw: Json
    ) -> web.StreamResponse:
        check_type(at.kind, raw)
        warnings = check_fields(request.query, at.kind, raw)
        entry, made = apply_object(self._api, at.kind, (at.namespace, at.name), raw, options)
        return await self._show(request, at, entry, 201 if made else 200, warnings)

    async def _delete(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        options = await read_delete(request)
        done = delete(self._api, at.kind, at.namespace, at.name, options)
        if not done.gone or at.kind.rules.shows_deleted:
            return await self._show(request, at, done.entry)
        await self._api.store.until_settled(done.entry.version)
        uid = done.entry.object["metadata"]["uid"]
        return json_answer(success(at.kind, at.name, uid))

    async def _delete_all(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        options = await read_delete(request)
        selection = asking.selection(request.query, at.kind, at.namespace)
        chosen = list_entries(self._api.store, at.kind, selection, asking.page(request.query))
        delete_all(self._api, at.kind, chosen.entries, options)
        await self._api.store.until_settled(self._api.store.version)
        return await send_list(request, at.kind, chosen)

    async def _read(self, request: web.BaseRequest, at: Address) -> tuple[Json, list[str]]:
        content_type, body = request.headers.get("Content-Type", ""), await request.read()
        raw = read_object(content_type, body, at.kind.schema)
        check_type(at.kind, raw)
        return raw, check_fields(request.query, at.kind, raw)


def _write(request: web.BaseRequest, at: Address) -> Write:
    """How to write; a client that does not say who it is goes by the name of its program."""
    agent = request.headers.get("User-Agent", "").partition("/")[0]
    options = _OPTIONS[request.method]
    return asking.write(request.query, options, agent=agent, subresource=at.part)


async def read_delete(request: web.BaseRequest) -> Delete:
    """The options of a deletion, from the body or from the query."""
    body = await request.read()
    content_type = request.headers.get("Content-Type", "")
    raw = read_object(content_type, body, "meta.v1.DeleteOptions") if body.strip() else {}
    query = request.query
    if "gracePeriodSeconds" in query:
        raw.setdefault("gracePeriodSeconds", asking.number(query, "gracePeriodSeconds"))
    if "propagationPolicy" in query:
        raw.setdefault("propagationPolicy", query["propagationPolicy"])
    return Delete.read(raw, dry_run=asking.write(query, "DeleteOptions").dry_run)
