"""Addresses that are not objects: discovery, health, the version."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from mooring.embedded.errors import method_not_allowed, no_such_path
from mooring.embedded.kinds import Kinds
from mooring.embedded.wire import Json

from . import discovery, openapi, openapi_v2
from .answers import json_answer, json_bytes

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
_FIXED: dict[str, Json] = {"/": {"paths": _PATHS}, "/version": discovery.VERSION}


class PlainPaths:
    """Answers what is asked about the server itself."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        #: OpenAPI documents by address, made when first asked for.
        self._documents: dict[str, bytes] = {}
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
            case ["healthz" | "livez" | "readyz", *_]:
                return lambda: web.Response(text="ok")
            case ["openapi", "v2"]:
                return lambda: self._openapi_v2(request.headers.get("Accept", ""))
            case ["openapi", "v3", *below]:
                return lambda: self._openapi("/".join(below))
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

    def _openapi(self, prefix: str) -> web.Response:
        if self._revision != self._kinds.revision or not self._documents:
            self._documents = openapi.documents(self._kinds)
            self._revision = self._kinds.revision
        document = self._documents.get(prefix)
        if document is None:
            raise no_such_path()
        return json_bytes(document)

    def _openapi_v2(self, accept: str) -> web.Response:
        document = openapi_v2.document(self._kinds)
        if openapi_v2.WANTED not in accept:
            return json_answer(document)
        headers = {"Content-Type": openapi_v2.PROTOBUF}
        return web.Response(body=openapi_v2.in_protobuf(document), headers=headers)

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
