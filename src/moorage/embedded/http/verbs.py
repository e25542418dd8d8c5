"""The verbs on addresses of objects and of their parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from moorage.embedded.api.decoding import part
from moorage.embedded.api.kind import ServedKind
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.api.request_options import DeleteOptions, WriteOptions, refuse_options
from moorage.embedded.api.server_side_apply import apply_object
from moorage.embedded.kinds.subresources import SCALES, bind, evict, finalize, scale_of, set_scale
from moorage.embedded.request_refusals import bad_request, forbidden_field, method_not_allowed
from moorage.embedded.store.object_store import Json, StoredObject
from moorage.embedded.store.queries import list_entries

from . import requests
from .answers import (
    WatchStream,
    body_of,
    json_answer,
    json_bytes,
    renderer_of,
    send_form,
    send_list,
    success_status,
)
from .requests import (
    APPLY,
    Address,
    apply_patch,
    check_fields,
    check_type,
    media_of,
    read_accept,
    read_object,
    read_patch,
)

# What Kubernetes calls the options of a request.
_OPTIONS = {"PATCH": "PatchOptions", "PUT": "UpdateOptions"}

Verb = Callable[[web.BaseRequest, Address], Awaitable[web.StreamResponse]]


class ObjectVerbs:
    """Answers requests for objects and collections of objects."""

    def __init__(self, api: ObjectApi, bookmark_seconds: float) -> None:
        self._api = api
        self._bookmark_seconds = bookmark_seconds

    async def answer(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        """Answers a request for an object or a collection."""
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
        """Answers a request for a subresource that has the form of the object."""
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
        if requests.read_flag(request.query, "watch"):
            return await self._watch(request, at)
        entry = self._api.get(at.kind, at.namespace, at.name)
        return await self._show(request, at, entry)

    async def _show(
        self,
        request: web.BaseRequest,
        at: Address,
        entry: StoredObject,
        code: int = 200,
        warnings: Sequence[str] = (),
    ) -> web.StreamResponse:
        want = read_accept(request.headers.get("Accept", ""))
        await self._api.store.until_safe(entry.version)
        if want.form:
            return send_form(request.query, at.kind, want, [entry])
        response = json_bytes(body_of(at.kind, entry), code)
        for warning in warnings:
            text = warning.encode("unicode_escape").decode().replace('"', '\\"')
            response.headers.add("Warning", f'299 - "{text}"')
        return response

    async def _list(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        if requests.read_flag(request.query, "watch"):
            return await self._watch(request, at)
        want = read_accept(request.headers.get("Accept", ""))
        selection = requests.read_selection(request.query, at.kind, at.namespace)
        store = self._api.store
        listed = list_entries(
            store, at.kind.table, selection, requests.read_list_request(request.query)
        )
        await store.until_safe(listed.version)
        if want.form:
            return send_form(request.query, at.kind, want, listed.entries, listed)
        return await send_list(request, at.kind, listed)

    async def _watch(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        want = read_accept(request.headers.get("Accept", ""))
        selection = requests.read_selection(request.query, at.kind, at.namespace, at.name)
        renderer = renderer_of(request.query, at.kind, want)
        stream = WatchStream(self._api.store, at.kind, selection, renderer)
        return await stream.send(
            request, requests.read_watch_request(request.query), self._bookmark_seconds
        )

    async def _create(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        raw, warnings = await self._read(request, at)
        if at.kind.namespaced and not at.namespace:
            raise method_not_allowed(at.kind.resource, request.method)
        entry = self._api.create(
            at.kind, at.namespace, raw, requests.read_write_options(request.query)
        )
        return await self._show(request, at, entry, 201, [*warnings, *_warning(at.kind)])

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
        raw = apply_patch(at.kind, stored, change)
        check_type(at.kind, raw)
        warnings = check_fields(request.query, at.kind, raw)
        write = self._api.update_status if at.part == "status" else self._api.update
        entry = write(at.kind, at.namespace, at.name, raw, options)
        return await self._show(request, at, entry, 200, warnings)

    async def _apply(
        self, request: web.BaseRequest, at: Address, options: WriteOptions, raw: Json
    ) -> web.StreamResponse:
        check_type(at.kind, raw)
        warnings = check_fields(request.query, at.kind, raw)
        entry, made = apply_object(self._api, at.kind, (at.namespace, at.name), raw, options)
        if made:
            warnings += _warning(at.kind)
        return await self._show(request, at, entry, 201 if made else 200, warnings)

    async def _delete(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        options = await read_delete(request)
        done = self._api.delete(at.kind, at.namespace, at.name, options)
        if not done.gone or at.kind.rules.shows_deleted:
            return await self._show(request, at, done.entry)
        await self._api.store.until_safe(done.entry.version)
        uid = done.entry.object["metadata"]["uid"]
        return json_answer(success_status(at.kind, at.name, uid))

    async def _delete_all(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        options = await read_delete(request)
        selection = requests.read_selection(request.query, at.kind, at.namespace)
        chosen = list_entries(
            self._api.store, at.kind.table, selection, requests.read_list_request(request.query)
        )
        self._api.delete_all(at.kind, chosen.entries, options)
        await self._api.store.until_safe(self._api.store.version)
        return await send_list(request, at.kind, chosen)

    async def _read(self, request: web.BaseRequest, at: Address) -> tuple[Json, list[str]]:
        content_type, body = request.headers.get("Content-Type", ""), await request.read()
        raw = read_object(content_type, body, at.kind.schema)
        check_type(at.kind, raw)
        return raw, check_fields(request.query, at.kind, raw)


def _warning(kind: ServedKind) -> list[str]:
    return [kind.warning] if kind.warning else []


def _write(request: web.BaseRequest, at: Address) -> WriteOptions:
    """Reads the options of a write; the user agent is the default field manager."""
    agent = request.headers.get("User-Agent", "").partition("/")[0]
    options = _OPTIONS[request.method]
    return requests.read_write_options(request.query, options, agent=agent, subresource=at.part)


async def read_delete(request: web.BaseRequest) -> DeleteOptions:
    """Reads the options of a deletion, from the body or from the query."""
    body = await request.read()
    content_type = request.headers.get("Content-Type", "")
    raw = read_object(content_type, body, "meta.v1.DeleteOptions") if body.strip() else {}
    query = request.query
    if "gracePeriodSeconds" in query:
        raw.setdefault("gracePeriodSeconds", requests.read_number(query, "gracePeriodSeconds"))
    if "propagationPolicy" in query:
        raw.setdefault("propagationPolicy", query["propagationPolicy"])
    return DeleteOptions.read(
        raw, dry_run=requests.read_write_options(query, "DeleteOptions").dry_run
    )


_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
_NO_CONTAINERS = "this cluster runs no containers: its nodes are hollow, so there is nothing to {}"
_CONTAINER_PARTS = {
    "log": "read logs from",
    "exec": "run commands in",
    "attach": "attach to",
    "portforward": "forward ports to",
}


class PartVerbs:
    """Answers requests for subresources."""

    def __init__(self, api: ObjectApi, verbs: ObjectVerbs) -> None:
        self._api = api
        self._verbs = verbs

    async def answer(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        if at.part in _CONTAINER_PARTS:
            self._api.get(at.kind, at.namespace, at.name)
            raise bad_request(_NO_CONTAINERS.format(_CONTAINER_PARTS[at.part]))
        if at.part == "ephemeralcontainers" and request.method != "GET":
            # Stored, they would let kubectl wait for ever for a container that never comes.
            raise bad_request(_NO_CONTAINERS.format("debug"))
        if at.part in ("binding", "eviction") or at.kind.plural == "bindings":
            return await self._post(request, at)
        if at.part == "scale":
            return await self._scale(request, at)
        if at.part == "finalize":
            return await self._finalize(request, at)
        return await self._verbs.answer_part(request, at)

    async def _scale(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        entry = self._api.get(at.kind, at.namespace, at.name)
        if request.method != "GET":
            raw = await self._read_scale(request, at, entry)
            options = requests.read_write_options(request.query)
            entry = set_scale(self._api, at.kind, at.namespace, at.name, raw, options)
        await self._api.store.until_safe(entry.version)
        want, scale = (
            read_accept(request.headers.get("Accept", "")),
            scale_of(at.kind, entry.object),
        )
        if want.form:
            renderer = entry.rewrite(entry.version, scale)
            return send_form(request.query, SCALES, want, [renderer])
        return json_answer(scale)

    async def _read_scale(self, request: web.BaseRequest, at: Address, entry: StoredObject) -> Json:
        content_type, body = request.headers.get("Content-Type", ""), await request.read()
        if request.method == "PUT":
            return read_object(content_type, body, "autoscaling.v1.Scale")
        if request.method != "PATCH":
            raise method_not_allowed(f"{at.kind.resource}/scale", request.method)
        raw = read_patch(content_type, body, "autoscaling.v1.Scale")(
            scale_of(at.kind, entry.object)
        )
        if not isinstance(raw, dict):
            raise bad_request("the patch leaves no object")
        return raw

    async def _finalize(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        if request.method != "PUT":
            raise method_not_allowed(f"{at.kind.resource}/finalize", request.method)
        content_type, body = request.headers.get("Content-Type", ""), await request.read()
        raw = read_object(content_type, body, at.kind.schema)
        entry = finalize(self._api, at.name, raw, requests.read_write_options(request.query))
        await self._api.store.until_safe(entry.version)
        return json_bytes(entry.body)

    async def _post(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        if request.method != "POST":
            raise method_not_allowed(f"{at.kind.resource}/{at.part}", request.method)
        content_type, body = request.headers.get("Content-Type", ""), await request.read()
        schema = "policy.v1.Eviction" if at.part == "eviction" else "core.v1.Binding"
        raw = read_object(content_type, body, schema)
        options = requests.read_write_options(request.query)
        if at.part == "eviction":
            evict(self._api, at.namespace, at.name, raw, options)
        else:
            bind(self._api, at.namespace, at.name or _name_in(raw), raw, options)
        await self._api.store.until_safe(self._api.store.version)
        return json_answer({**_SUCCESS, "code": 201}, 201)


def _name_in(raw: Json) -> str:
    name = part(raw, "metadata").get("name")
    return name if isinstance(name, str) else ""
