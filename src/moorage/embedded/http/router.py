"""Routes requests: checks the token, and finds what answers a path."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable

from aiohttp import web

from moorage.embedded.api.kind import ServedKinds
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.http import discovery, openapi
from moorage.embedded.kinds import usage_kinds
from moorage.embedded.kinds.usage_kinds import node_usage, pod_usage
from moorage.embedded.request_refusals import (
    RequestRefused,
    bad_request,
    method_not_allowed,
    no_such_path,
    not_found,
    too_large,
    unauthorized,
)
from moorage.embedded.store.object_store import Json, ObjectStore, StoredObject
from moorage.embedded.store.queries import Selection, list_entries

from .answers import JSON, json_answer, json_bytes, metadata_only, refuse
from .requests import Address, check_type, locate, read_accept, read_object, read_selection
from .verbs import ObjectVerbs, PartVerbs

_USER = {
    "username": "moorage-admin",
    "groups": ["system:masters", "system:authenticated"],
}
_ALLOWED = {"allowed": True, "reason": "the token allows everything"}
_EVERYTHING: Json = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
_STATUSES: dict[str, Json] = {
    # The server knows its own token only.
    "TokenReview": {"authenticated": False},
    "SelfSubjectReview": {"userInfo": _USER},
    "SubjectAccessReview": _ALLOWED,
    "SelfSubjectAccessReview": _ALLOWED,
    "LocalSubjectAccessReview": _ALLOWED,
    "SelfSubjectRulesReview": _EVERYTHING,
}


async def review(request: web.BaseRequest, at: Address) -> web.StreamResponse:
    """Answers a review; none is stored."""
    if request.method != "POST" or at.name:
        raise method_not_allowed(at.kind.resource, request.method)
    content_type, body = request.headers.get("Content-Type", ""), await request.read()
    want = read_accept(request.headers.get("Accept", ""), tables=False)
    raw = read_object(content_type, body, at.kind.schema)
    check_type(at.kind, raw)
    item = {"metadata": {}, "spec": {}, **at.kind.read(raw)}
    answer = {**item, "status": _STATUSES[at.kind.kind]}
    return json_answer(metadata_only(answer, want) if want.form else answer, 201)


_PATHS = [
    "/api",
    "/apis",
    "/healthz",
    "/livez",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/version",
]
#: What the largest request may have.
MAX_BODY_BYTES = 3 * 1024 * 1024

_OPENAPI = {"v2": openapi.documents_v2, "v3": openapi.documents}
_FIXED: dict[str, Json] = {"/": {"paths": _PATHS}, "/version": discovery.VERSION}


class ServerPaths:
    """Answers paths about the server itself: health, version, discovery, OpenAPI."""

    def __init__(self, kinds: ServedKinds, store: ObjectStore) -> None:
        self._kinds = kinds
        self._store = store
        #: OpenAPI documents by version and name, made when first asked for.
        self._documents: dict[str, dict[str, bytes]] = {}
        self._revision = 0

    def answer(self, request: web.BaseRequest) -> web.Response | None:
        """Returns the answer; None if the path is one of objects."""
        path = "/" + request.path.strip("/")
        found = self._find_answer(request, path)
        if found is None:
            return None
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed(path, request.method)
        return found()

    def _find_answer(
        self, request: web.BaseRequest, path: str
    ) -> Callable[[], web.Response] | None:
        match path.split("/")[1:]:
            case ["healthz" | "livez" | "readyz" as probe, *_]:
                return lambda: self._health(probe)
            case ["openapi", "v2"]:
                return lambda: self._openapi_v2(request.headers.get("Accept", ""))
            case ["openapi", "v3", *below]:
                return lambda: json_bytes(self._openapi("v3", "/".join(below)))
            case ["api" | "apis" as root]:
                return lambda: self._groups(request, core=root == "api")
            case ["api", "v1"]:
                return lambda: json_answer(discovery.resources(self._kinds, "", "v1"))
            case ["apis", group]:
                return lambda: json_answer(discovery.group(self._kinds, group))
            case ["apis", group, version]:
                return lambda: json_answer(discovery.resources(self._kinds, group, version))
            case _:
                fixed = _FIXED.get(path)
                return (lambda: json_answer(fixed)) if fixed else None

    def _health(self, probe: str) -> web.Response:
        failure = self._store.failure
        # A restart makes no room on a disk, so the server is alive without any.
        if not failure or probe == "livez":
            return web.Response(text="ok")
        return web.Response(
            text=f"[-]storage failed: {failure}\n{probe} check failed\n", status=500
        )

    def _openapi(self, version: str, name: str) -> bytes:
        """Returns an OpenAPI document; all are made at once, and again when kinds change."""
        if self._revision != self._kinds.revision:
            self._documents.clear()
            self._revision = self._kinds.revision
        if version not in self._documents:
            self._documents[version] = _OPENAPI[version](self._kinds)
        document = self._documents[version].get(name)
        if document is None:
            raise no_such_path()
        return document

    def _openapi_v2(self, accept: str) -> web.Response:
        if openapi.V2_ACCEPTED not in accept:
            return json_bytes(self._openapi("v2", JSON))
        body = self._openapi("v2", openapi.V2_PROTOBUF)
        return web.Response(body=body, headers={"Content-Type": openapi.V2_PROTOBUF})

    def _groups(self, request: web.BaseRequest, *, core: bool) -> web.Response:
        version = discovery.wants_aggregated(request.headers.get("Accept", ""))
        if version:
            response = json_answer(discovery.aggregate(self._kinds, version, core=core))
            media = f"g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            response.headers["Content-Type"] = f"application/json;{media}"
            return response
        if core:
            return json_answer(discovery.core_versions(request.host))
        return json_answer(discovery.groups(self._kinds))


_LOG = logging.getLogger(__name__)


class Router:
    """Answers every request; a refusal is always a Status."""

    def __init__(self, api: ObjectApi, token: str, bookmark_seconds: float) -> None:
        self._api = api
        self._plain = ServerPaths(api.kinds, api.store)
        self._verbs = ObjectVerbs(api, bookmark_seconds)
        self._parts = PartVerbs(api, self._verbs)
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except RequestRefused as refusal:
            return refuse(await self._final(refusal))
        except web.HTTPRequestEntityTooLarge:
            return refuse(too_large(MAX_BODY_BYTES))
        except RecursionError:
            return refuse(bad_request("the object is nested too deeply"))
        except ConnectionError:
            raise
        except Exception:  # noqa: BLE001 - an error of the server is a Status, too
            _LOG.exception("a request to %s failed", request.path)
            return refuse(RequestRefused(500, "InternalError", "Internal error occurred"))

    async def _final(self, refusal: RequestRefused) -> RequestRefused:
        """Waits until the state behind a refusal is on disk; returns the refusal, or the disk's."""
        try:
            await self._api.store.until_safe(self._api.store.version)
        except RequestRefused as worse:
            return worse
        return refusal

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._expected):
            raise unauthorized()
        found = self._plain.answer(request)
        if found is not None:
            return found
        at = locate(self._api.kinds, request.path)
        if at.part or at.kind.resource == "bindings":
            return await self._parts.answer(request, at)
        if at.kind.group in ("authentication.k8s.io", "authorization.k8s.io"):
            return await review(request, at)
        if at.kind.group == usage_kinds.GROUP:
            return answer_usage(self._api, request, at)
        return await self._verbs.answer(request, at)


def answer_usage(api: ObjectApi, request: web.BaseRequest, at: Address) -> web.StreamResponse:
    """Answers a request for the usage of nodes or pods."""
    if request.method != "GET" or "watch" in request.query:
        raise method_not_allowed(at.kind.resource, request.method)
    read_accept(request.headers.get("Accept", ""), tables=False)
    measured = api.kinds[at.kind.plural]
    selection = read_selection(request.query, measured, at.namespace, at.name)
    listed = list_entries(api.store, measured.table, selection)
    if at.kind.plural == "pods":
        found = [pod_usage(api, each) for each in listed.entries]
        items = [each for each in found if each is not None]
    else:
        items = _nodes(api, listed.entries)
    if not at.name:
        head = {"kind": f"{at.kind.kind}List", "apiVersion": at.kind.api_version}
        return json_answer({**head, "metadata": {}, "items": items})
    if not items:
        raise not_found(at.kind.resource, at.name)
    return json_answer(items[0])


def _nodes(api: ObjectApi, entries: list[StoredObject]) -> list[Json]:
    pods = api.kinds["pods"]
    place = pods.position("spec.nodeName") or 0
    by_node: dict[str, list[StoredObject]] = {}
    for each in list_entries(api.store, pods.table, Selection()).entries:
        by_node.setdefault(each.fields[place], []).append(each)
    return [node_usage(api, each, by_node.get(each.name, ())) for each in entries]
