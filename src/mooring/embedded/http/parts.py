"""The parts of objects that have addresses of their own."""

from __future__ import annotations

from aiohttp import web

from mooring.embedded.api import Api
from mooring.embedded.binding import bind
from mooring.embedded.errors import bad_request, method_not_allowed
from mooring.embedded.eviction import evict
from mooring.embedded.namespaces import finalize
from mooring.embedded.rules.plain import part
from mooring.embedded.scale import SCALES, scale_of, set_scale
from mooring.embedded.tables import Entry
from mooring.embedded.wire import Json

from . import asking
from .answers import json_answer, json_bytes
from .forms import send_form
from .media import read_object, wanted
from .patches import read_patch
from .paths import Address
from .verbs import Verbs

_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
_NO_CONTAINERS = "this cluster runs no containers: its nodes are hollow, so there is nothing to {}"
_CONTAINER_PARTS = {
    "log": "read logs from",
    "exec": "run commands in",
    "attach": "attach to",
    "portforward": "forward ports to",
}


class Parts:
    """Answers requests for subresources."""

    def __init__(self, api: Api, verbs: Verbs) -> None:
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
            raw = await self._scale_wanted(request, at, entry)
            options = asking.write(request.query)
            entry = set_scale(self._api, at.kind, at.namespace, at.name, raw, options)
        await self._api.store.until_settled(entry.version)
        want, scale = wanted(request.headers.get("Accept", "")), scale_of(at.kind, entry.object)
        if want.form:
            shown = entry.rewritten(entry.version, scale)
            return send_form(request.query, SCALES, want, [shown])
        return json_answer(scale)

    async def _scale_wanted(self, request: web.BaseRequest, at: Address, entry: Entry) -> Json:
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
        entry = finalize(self._api, at.name, raw, asking.write(request.query))
        await self._api.store.until_settled(entry.version)
        return json_bytes(entry.body)

    async def _post(self, request: web.BaseRequest, at: Address) -> web.StreamResponse:
        if request.method != "POST":
            raise method_not_allowed(f"{at.kind.resource}/{at.part}", request.method)
        content_type, body = request.headers.get("Content-Type", ""), await request.read()
        schema = "policy.v1.Eviction" if at.part == "eviction" else "core.v1.Binding"
        raw = read_object(content_type, body, schema)
        options = asking.write(request.query)
        if at.part == "eviction":
            evict(self._api, at.namespace, at.name, raw, options)
        else:
            bind(self._api, at.namespace, at.name or _name(raw), raw, options)
        await self._api.store.until_settled(self._api.store.version)
        return json_answer({**_SUCCESS, "code": 201}, 201)


def _name(raw: Json) -> str:
    name = part(raw, "metadata").get("name")
    return name if isinstance(name, str) else ""
