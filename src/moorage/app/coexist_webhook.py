"""The validating admission webhook of the coexist policy: AdmissionReview v1 over HTTPS.

The API server's reaction to an answer decides how each problem is answered:

- status 200 with `allowed: false` and the uid of the review always refuses the request;
- any other status, or a wrong uid, leaves the request to `failurePolicy`, which may admit it.

So a review that cannot be read is refused as long as its uid can be found: no pod gets around the
policy because it cannot be read. A request that is not a review gets a status of 4xx.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from moorage.client.api import Api
from moorage.client.api_errors import ApiError, ClientError
from moorage.client.connection import Connection
from moorage.client.reflector import Reflector
from moorage.documents.json_text import decode_at_any_depth
from moorage.objects.coexist import is_exclusive
from moorage.objects.decode import UNREADABLE, from_json
from moorage.objects.kinds import KINDS
from moorage.objects.meta import Wire
from moorage.objects.pod import Pod
from moorage.objects.pod_refusal import PodRefusal

from . import logs
from .coexist_admission import CoexistGuard, NodeSizes, encode_patch, raise_requests
from .connections import ConnectionLimits
from .https_site import ServingSettings, serve_https

_log = logs.make_log(__name__)

#: Where reviews are posted.
PATH = "/coexist-policy"

#: Where pods are posted whose requests may be raised.
RAISE_PATH = "/raise-requests"

#: An API server asks once per request that it has under way, which are some hundreds at most.
LIMITS = ConnectionLimits(most=512, most_per_address=256)

# An API server takes objects of at most 3 MiB and writes some characters as six.
_MOST_BYTES = 20 << 20
# Reviews beyond this size are rare, and so few are read at the same time that memory suffices.
_LARGE_BYTES = 1 << 20
_MOST_LARGE = 8
# API servers wait 10 s for an answer unless the configuration has another time.
_READ_SECONDS = 5.0
# Anybody can make us look for pods, but not more often than this at once.
_MOST_LOOKUPS = 8
_LOOKUP_SECONDS = 3.0

# How an API server begins a review.
_UID = re.compile(rb'"request"\s*:\s*\{\s*"uid"\s*:\s*"([0-9A-Za-z-]{1,64})"')
_BEGINNING_BYTES = 1024


class OnError(StrEnum):
    """The answer while the pods of the cluster, or the pod in question, are not known."""

    ALLOW = "allow"
    DENY = "deny"


class _Kind(Wire, frozen=True):
    kind: str = ""


class _Request(Wire, frozen=True):
    uid: str
    kind: _Kind = _Kind()
    name: str = ""
    namespace: str = ""
    dry_run: bool | None = None
    object: msgspec.Raw = msgspec.Raw(b"{}")


class _Review(Wire, frozen=True):
    request: _Request


class _Meta(Wire, frozen=True):
    name: str = ""
    uid: str = ""


class _Target(Wire, frozen=True):
    name: str = ""


class _Binding(Wire, frozen=True):
    metadata: _Meta = _Meta()
    target: _Target = _Target()


_REVIEW = msgspec.json.Decoder(_Review)
_BINDING = msgspec.json.Decoder(_Binding)


class CannotTell(Exception):
    """The question cannot be answered; the text says why."""


class Webhook:
    """Answers reviews."""

    def __init__(
        self,
        api: Api,
        guard: CoexistGuard,
        synced: asyncio.Event,
        on_error: OnError,
        *,
        trusts_callers: bool = False,
        sizes: NodeSizes | None = None,
    ) -> None:
        """`trusts_callers` says that only an API server can reach the webhook.

        With `sizes`, requests of exclusive pods are raised to the size of a node.
        """
        self.sizes = sizes
        self._api = api
        self._guard = guard
        #: Until the pods are known, nothing can be said of them.
        self._synced = synced
        self._on_error = on_error
        self._trusts_callers = trusts_callers
        self._large_bodies = asyncio.Semaphore(_MOST_LARGE)
        self._lookups = asyncio.Semaphore(_MOST_LOOKUPS)

    async def answer(self, request: web.Request) -> web.Response:
        """Answers one review."""
        body = await self._read_body(request)
        try:
            review = decode_at_any_depth(_REVIEW.decode, body).request
        except UNREADABLE as error:
            return _answer_unreadable(body, error)
        try:
            refusal = await self._review(review)
        except UNREADABLE as error:
            refusal = _refuse_unreadable(error)
        except CannotTell as error:
            pod = f"{review.namespace}/{review.name}"
            _log.error("Could not review a pod", pod=pod, error=error)
            refusal = None
            if self._on_error is OnError.DENY:
                refusal = PodRefusal("CoexistPolicy", f"failed CoexistPolicy: cannot tell: {error}")
        return _respond(review.uid, refusal)

    async def raise_requests(self, request: web.Request) -> web.Response:
        """Answers a review of a pod that is created: never a refusal, perhaps a patch."""
        body = await self._read_body(request)
        try:
            review = decode_at_any_depth(_REVIEW.decode, body).request
        except UNREADABLE as error:
            return _answer_unreadable(body, error)
        patch: list[dict[str, Any]] = []
        try:
            pod = from_json("Pod", bytes(review.object))
            assert isinstance(pod, Pod)
            if self.sizes is not None and self._synced.is_set():
                manifest = msgspec.json.decode(review.object)
                patch = raise_requests(pod, manifest, self.sizes)
        except UNREADABLE as error:
            # The API server will say itself what is wrong with it.
            _log.warning("Could not read a pod", error=error)
        return _respond(review.uid, None, encode_patch(patch))

    async def is_ready(self, _: web.Request) -> web.Response:
        if self._synced.is_set():
            return web.Response(text="ok")
        text = "the pods of the cluster are not known yet"
        return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text=text)

    async def _read_body(self, request: web.Request) -> bytes:
        # A compressed body could be of any size; no API server sends one.
        if request.headers.get("Content-Encoding"):
            raise web.HTTPUnsupportedMediaType(text="a compressed review cannot be read\n")
        size = request.content_length
        if size is None:
            raise web.HTTPLengthRequired
        if size > _MOST_BYTES:
            raise web.HTTPRequestEntityTooLarge(_MOST_BYTES, size)
        try:
            async with asyncio.timeout(_READ_SECONDS):
                if size <= _LARGE_BYTES:
                    return await request.read()
                async with self._large_bodies:
                    return await request.read()
        except TimeoutError:
            raise web.HTTPRequestTimeout from None

    async def _review(self, review: _Request) -> PodRefusal | None:
        if not self._synced.is_set():
            raise CannotTell("the pods of the cluster are not known yet")
        if review.kind.kind == "Binding":
            return await self._review_binding(review)
        pod = from_json("Pod", bytes(review.object))
        assert isinstance(pod, Pod)
        # Nothing is reserved for it: what makes a pod may still be refused by others, by quota for
        # one, and then a pod that was refused would have closed the node.
        return self._ask_guard(pod, pod.node_name) if pod.node_name else None

    async def _review_binding(self, review: _Request) -> PodRefusal | None:
        binding = decode_at_any_depth(_BINDING.decode, review.object)
        name, uid = review.name or binding.metadata.name, binding.metadata.uid
        pod = self._guard.find(review.namespace, name)
        if pod is None or (uid and pod.uid != uid):
            pod = await self._look_up(review.namespace, name)
        if pod is None or pod.node_name or (uid and pod.uid != uid):
            # The API server itself refuses to bind it.
            return None
        refusal = self._ask_guard(pod, binding.target.name)
        if refusal is None and not review.dry_run and self._may_reserve(pod):
            self._guard.reserve(pod, binding.target.name)
        return refusal

    def _may_reserve(self, pod: Pod) -> bool:
        """Whether a binding is surely real, so that an ordinary pod may reserve its node."""
        return is_exclusive(pod) or self._trusts_callers

    def _ask_guard(self, pod: Pod, node: str) -> PodRefusal | None:
        refusal = self._guard.review(pod, node)
        if refusal is not None:
            _log.info("Refused a pod", pod=pod.key, node=node, reason=refusal.message)
        return refusal

    async def _look_up(self, namespace: str, name: str) -> Pod | None:
        """Reads a pod that the watch has not delivered yet."""
        try:
            async with asyncio.timeout(_LOOKUP_SECONDS), self._lookups:
                body = await self._api.get(KINDS["Pod"].path(namespace, name))
        except ApiError as error:
            if error.is_not_found:
                return None  # The API server will say so itself.
            raise CannotTell(str(error)) from error
        except (ClientError, TimeoutError) as error:
            raise CannotTell(str(error) or "the API server does not answer") from error
        found = from_json("Pod", body)
        assert isinstance(found, Pod)
        return found


def _answer_unreadable(body: bytes, error: Exception) -> web.Response:
    """Refuses an unreadable review of an API server; tells other clients what is wrong."""
    found = _UID.search(body, 0, _BEGINNING_BYTES)
    if found is not None:
        return _respond(found[1].decode(), _refuse_unreadable(error))
    return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"not an AdmissionReview: {error}\n")


def _refuse_unreadable(error: Exception) -> PodRefusal:
    return PodRefusal("CoexistPolicy", f"failed CoexistPolicy: the object cannot be read: {error}")


def _respond(
    uid: str, refusal: PodRefusal | None, more: Mapping[str, str] | None = None
) -> web.Response:
    response: dict[str, Any] = {"uid": uid, "allowed": refusal is None, **(more or {})}
    if refusal is not None:
        response["status"] = {
            "code": HTTPStatus.FORBIDDEN,
            "reason": "Forbidden",
            "message": refusal.message,
        }
    kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    body = msgspec.json.encode({**kind, "response": response})
    return web.Response(content_type="application/json", body=body)


@dataclass(frozen=True)
class WebhookSettings:
    """The settings of the webhook."""

    serving: ServingSettings
    on_error: OnError = OnError.ALLOW
    enabled: bool = True
    raises_requests: bool = False


async def guard_cluster(connection: Connection, settings: WebhookSettings) -> None:
    """Answers reviews until a signal stops it."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(Api(connection))
        port = await stack.enter_async_context(serve_reviews(api, settings))
        _log.info("Reviewing", port=port, path=PATH)
        await stopping.wait()


@asynccontextmanager
async def serve_reviews(api: Api, settings: WebhookSettings) -> AsyncIterator[int]:
    """Serves for as long as the context lasts; yields the port."""
    asks_for_certificates = bool(settings.serving.certificate.client_ca_file)
    guard = CoexistGuard(enabled=settings.enabled)
    reflector = Reflector(api, KINDS["Pod"], guard)
    raises = settings.raises_requests and settings.enabled
    sizes = NodeSizes(guard.pods_on) if raises else None
    webhook = Webhook(
        api,
        guard,
        reflector.synced,
        settings.on_error,
        trusts_callers=asks_for_certificates,
        sizes=sizes,
    )
    app = application(webhook, asks_for_certificates=asks_for_certificates)
    # Without the right to see namespaces, none of them is trusted.
    namespaces = Reflector(api, KINDS["Namespace"], guard)
    watches = [reflector.run(), namespaces.run()]
    if sizes is not None:
        watches.append(Reflector(api, KINDS["Node"], sizes).run())
    watching = asyncio.gather(*watches)
    try:
        async with serve_https(app, settings.serving) as port:
            yield port
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def application(webhook: Webhook, *, asks_for_certificates: bool = False) -> web.Application:
    """Makes the application: reviews, and probes for a kubelet, which shows no certificate."""
    guards = [_require_certificate()] if asks_for_certificates else []
    app = web.Application(client_max_size=_MOST_BYTES, middlewares=guards)
    app.router.add_post(PATH, webhook.answer)
    if webhook.sizes is not None:
        app.router.add_post(RAISE_PATH, webhook.raise_requests)
    app.router.add_get("/healthz", _healthy)
    app.router.add_get("/readyz", webhook.is_ready)
    return app


def _require_certificate() -> Middleware:
    @web.middleware
    async def require(request: web.Request, handler: Handler) -> web.StreamResponse:
        # The handshake has checked who signed it; without one this is empty.
        if request.path in (PATH, RAISE_PATH) and not request.get_extra_info("peercert"):
            text = "a client certificate is required\n"
            return web.Response(status=HTTPStatus.UNAUTHORIZED, text=text)
        return await handler(request)

    return require


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok")
