"""Addresses that are not objects: discovery, health, the version."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from mooring.embedded.errors import method_not_allowed, no_such_path
from mooring.embedded.kinds import Kinds
from mooring.embedded.store import Store
from mooring.embedded.wire import Json

from . import discovery, openapi, openapi_v2
from .answers import JSON, json_answer, json_bytes

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
_OPENAPI = {"v2": openapi_v2.documents, "v3": openapi.documents}
_FIXED: dict[str, Json] = {"/": {"paths": _PATHS}, "/version": discovery.VERSION}


class PlainPaths:
    """Answers what is asked about the server itself."""

    def __init__(self, kinds: Kinds, store: Store) -> None:
        self._kinds = kinds
        self._store = store
        #: OpenAPI documents by version and name, made when first asked for.
        self._documents: dict[str, dict[str, bytes]] = {}
        self._revision = 0

    def answer(self, request: web.BaseRequest) -> web.Response | None:
        """The answer; None if the address is one of objects."""
        path = "/" + request.path.strip("/")
        found = self._found(request, path)
        if found is None:
            return None
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed(path, request.method)
        return found()

    def _found(self, request: web.BaseRequest, path: str) -> Callable[[], web.Response] | None:
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
        """A document of OpenAPI; all of a version are made at once, and anew with new kinds."""
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
        if openapi_v2.WANTED not in accept:
            return json_bytes(self._openapi("v2", JSON))
        body = self._openapi("v2", openapi_v2.PROTOBUF)
        return web.Response(body=body, headers={"Content-Type": openapi_v2.PROTOBUF})

    def _groups(self, request: web.BaseRequest, *, core: bool) -> web.Response:
        version = discovery.wants_aggregated(request.headers.get("Accept", ""))
        if version:
            response = json_answer(discovery.aggregated(self._kinds, version, core=core))
            media = f"g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            response.headers["Content-Type"] = f"application/json;{media}"
            return response
        if core:
            return json_answer(discovery.core_versions(request.host))
        return json_answer(discovery.groups(self._kinds))
