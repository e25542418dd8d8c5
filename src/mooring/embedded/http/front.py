"""The door of the server: who may ask, what an address stands for, and what goes wrong."""

from __future__ import annotations

import hmac
import logging

from aiohttp import web

from mooring.embedded.api import Api
from mooring.embedded.errors import Refused, bad_request, too_large, unauthorized
from mooring.embedded.settings import Settings

from .answers import failure
from .listener import MAX_BODY_BYTES
from .parts import Parts
from .paths import locate
from .plain import PlainPaths
from .reviews import review
from .verbs import Verbs

_LOG = logging.getLogger(__name__)


class Front:
    """Answers every request, always with a Status where something is refused."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api = api
        self._plain = PlainPaths(api.kinds, api.store)
        self._verbs = Verbs(api, settings.bookmark_seconds)
        self._parts = Parts(api, self._verbs)
        self._expected = f"Bearer {settings.token}".encode()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except Refused as refusal:
            return failure(await self._final(refusal))
        except web.HTTPRequestEntityTooLarge:
            return failure(too_large(MAX_BODY_BYTES))
        except RecursionError:
            return failure(bad_request("the object is nested too deeply"))
        except ConnectionError:
            raise
        except Exception:  # noqa: BLE001 - a fault of ours is told to the client as a Status, too
            _LOG.exception("a request to %s failed", request.path)
            return failure(Refused(500, "InternalError", "Internal error occurred"))

    async def _final(self, refusal: Refused) -> Refused:
        """A refusal once all is safe that it may rest on, or the one that it never will be."""
        try:
            await self._api.store.until_settled(self._api.store.version)
        except Refused as worse:
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
        return await self._verbs.answer(request, at)
