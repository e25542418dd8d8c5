"""The validating admission webhook of the coexist policy: AdmissionReview v1 over HTTPS."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

from mooring.client.api import Api
from mooring.client.connection import Connection
from mooring.client.errors import ApiError, ClientError
from mooring.client.reflector import Reflector
from mooring.client.resources import RESOURCES
from mooring.objects.coexist import Refusal
from mooring.objects.decode import DecodeError, from_builtins, from_json
from mooring.objects.meta import Wire
from mooring.objects.pod import Pod

from . import logs
from .coexist_guard import CoexistGuard
from .tls_site import ServingSettings, tls_site

_log = logs.named(__name__)

#: Where reviews are posted.
PATH = "/coexist-policy"

# What an API server sends is an object of at most 3 MiB, twice.
_MOST_BYTES = 8 * 2**20


class OnError(StrEnum):
    """What to answer when the question cannot be."""

    ALLOW = "allow"
    DENY = "deny"


class _Kind(Wire, frozen=True):
    kind: str = ""


class _Request(Wire, frozen=True):
    uid: str
    kind: _Kind = _Kind()
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: str = ""
    dry_run: bool | None = None
    object: dict[str, Any] | None = None


class _Review(Wire, frozen=True):
    request: _Request


_decode = msgspec.json.Decoder(_Review).decode


class CannotTell(Exception):
    """The question cannot be answered; the text says why."""


class Webhook:
    """Answers reviews."""

    def __init__(
        self, api: Api, guard: CoexistGuard, synced: asyncio.Event, on_error: OnError
    ) -> None:
        self._api = api
        self._guard = guard
        #: Until the pods are known, nothing can be said of them.
        self._synced = synced
        self._on_error = on_error

    async def answer(self, request: web.Request) -> web.Response:
        """One review."""
        try:
            asked = _decode(await request.read()).request
        except msgspec.MsgspecError as error:
            told = f"not an AdmissionReview: {error}"
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=told)
        try:
            refused = await self._review(asked)
        except CannotTell as error:
            _log.error("Could not review a pod", pod=f"{asked.namespace}/{asked.name}", error=error)
            refused = None
            if self._on_error is OnError.DENY:
                refused = Refusal("CoexistPolicy", f"failed CoexistPolicy: cannot tell: {error}")
        return web.Response(content_type="application/json", body=_response(asked.uid, refused))

    async def is_ready(self, _: web.Request) -> web.Response:
        if self._synced.is_set():
            return web.Response(text="ok")
        told = "the pods of the cluster are not known yet"
        return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text=told)

    async def _review(self, asked: _Request) -> Refusal | None:
        if not self._synced.is_set():
            raise CannotTell("the pods of the cluster are not known yet")
        if asked.kind.kind == "Binding":
            pod, node = await self._bound(asked)
        else:
            pod, node = _created(asked)
        if pod is None or not node:
            return None
        refused = self._guard.review(pod, node, reserve=not asked.dry_run)
        if refused is not None:
            _log.info("Refused a pod", pod=pod.key, node=node, reason=refused.message)
        return refused

    async def _bound(self, asked: _Request) -> tuple[Pod | None, str]:
        given = asked.object or {}
        node = str((given.get("target") or {}).get("name", ""))
        name = asked.name or str((given.get("metadata") or {}).get("name", ""))
        pod = self._guard.find(asked.namespace, name)
        return pod or await self._look_up(asked.namespace, name), node

    async def _look_up(self, namespace: str, name: str) -> Pod | None:
        """A pod that the watch has not told of yet."""
        try:
            found = from_json("Pod", await self._api.get(RESOURCES["Pod"].path(namespace, name)))
        except ApiError as error:
            if error.is_not_found:
                return None  # The API server will say so itself.
            raise CannotTell(str(error)) from error
        except (ClientError, DecodeError, ValueError) as error:
            raise CannotTell(str(error)) from error
        assert isinstance(found, Pod)
        return found


def _created(asked: _Request) -> tuple[Pod | None, str]:
    try:
        pod = from_builtins("Pod", asked.object or {})
    except DecodeError as error:
        raise CannotTell(str(error)) from error
    assert isinstance(pod, Pod)
    return pod, pod.node_name


def _response(uid: str, refused: Refusal | None) -> bytes:
    response: dict[str, Any] = {"uid": uid, "allowed": refused is None}
    if refused is not None:
        response["status"] = {
            "code": HTTPStatus.FORBIDDEN,
            "reason": "Forbidden",
            "message": refused.message,
        }
    kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return msgspec.json.encode({**kind, "response": response})


@dataclass(frozen=True)
class WebhookSettings:
    """How the webhook is run."""

    serving: ServingSettings
    on_error: OnError = OnError.ALLOW
    enabled: bool = True


async def guard_cluster(connection: Connection, settings: WebhookSettings) -> None:
    """Answers reviews until told to stop."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(Api(connection))
        port = await stack.enter_async_context(serving_reviews(api, settings))
        _log.info("Reviewing", port=port, path=PATH)
        await stopping.wait()


@asynccontextmanager
async def serving_reviews(api: Api, settings: WebhookSettings) -> AsyncIterator[int]:
    """Serves for as long as the context lasts; gives the port."""
    guard = CoexistGuard(enabled=settings.enabled)
    reflector = Reflector(api, RESOURCES["Pod"], guard)
    webhook = Webhook(api, guard, reflector.synced, settings.on_error)
    app = web.Application(client_max_size=_MOST_BYTES)
    app.router.add_post(PATH, webhook.answer)
    app.router.add_get("/healthz", _healthy)
    app.router.add_get("/readyz", webhook.is_ready)
    watching = asyncio.create_task(reflector.run())
    try:
        async with tls_site(app, settings.serving) as port:
            yield port
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok")
