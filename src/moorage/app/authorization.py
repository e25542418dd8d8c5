"""Decides who may read the endpoints. It asks the API server: TokenReview, SubjectAccessReview.

If anything fails on the way, the request is refused. Answers are kept for ten seconds, as
Kubernetes' components keep them. Anybody can invent tokens, so refusals are kept apart from
approvals, and only few reviews may wait at once, fewer still from one address.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from .logs import make_log

LOG = make_log("moorage.authorization")

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

ALWAYS_ALLOWED = ("/healthz", "/livez", "/readyz")

# A user who got a token reviewed is one of them, whether the review says so or not.
_AUTHENTICATED = "system:authenticated"

_SCHEME = "bearer "

# Answers that are kept; the oldest is forgotten first.
_MOST_KEPT = 1_024
#: Reviews under way at once; the connection to the API server needs no more places than these.
MOST_AT_ONCE = 8
# Requests that wait for a review, of all addresses and of one: each of them keeps a connection.
_MOST_WAITING, _MOST_WAITING_PER_ADDRESS = 128, 32
# How long one request waits for its reviews.
_PATIENCE_SECONDS = 10.0

V = TypeVar("V")


class ReviewApi(Protocol):
    """The part of the API client that the authorizer needs. Failures are raised."""

    async def post(self, path: str, body: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class AuthorizationSettings:
    """The paths that need no authorization, and how long answers are kept.

    A path may end in `*`.
    """

    always_allow_paths: tuple[str, ...] = ALWAYS_ALLOWED
    cache_seconds: float = 10.0


class Denied(Exception):
    """A refusal: the HTTP status, and the text for the caller."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class ReviewedUser(msgspec.Struct, frozen=True, omit_defaults=True):
    """The user that a TokenReview names."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """What a request shows about its sender."""

    #: The Authorization header.
    authorization: str | None = None
    #: Who the client certificate is for. The handshake has checked who signed it.
    certified: ReviewedUser | None = None
    address: str = ""


def read_certificate(shown: Mapping[str, Any] | None) -> ReviewedUser | None:
    """Returns the user of a client certificate: its common name, with organizations as groups."""
    subject = [pair for part in (shown or {}).get("subject", ()) for pair in part]
    names = [value for field, value in subject if field == "commonName"]
    groups = tuple(value for field, value in subject if field == "organizationName")
    return ReviewedUser(names[0], groups=groups) if names and names[0] else None


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: ReviewedUser = ReviewedUser()


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


class Authorizer:
    """Lets a request pass, or raises Denied."""

    def __init__(
        self,
        api: ReviewApi,
        settings: AuthorizationSettings | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._api = api
        self._settings = settings or AuthorizationSettings()
        self._users: _Kept[ReviewedUser | None] = _Kept(self._settings.cache_seconds, clock)
        self._answers: _Kept[bool] = _Kept(self._settings.cache_seconds, clock)
        self._at_once = asyncio.Semaphore(MOST_AT_ONCE)
        self._waiting: Counter[str] = Counter()

    async def check(self, path: str, verb: str, caller: Caller) -> None:
        """Raises Denied if the caller may not do that.

        A certificate takes precedence over a token.
        """
        if self._is_open(path):
            return
        token = _token(caller.authorization)
        if token is None and caller.certified is None:
            raise Denied(401, "Unauthorized: a bearer token is required")
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                user = caller.certified
                if user is None and token is not None:
                    user = await self._user(token, caller.address)
                allowed = user is not None and await self._may(user, path, verb)
        except Denied:
            raise
        except Exception as error:  # noqa: BLE001 - nobody gets in because we cannot ask
            LOG.warning("Access cannot be reviewed", path=path, error=error or type(error))
            text = "access cannot be reviewed: the API server does not answer, or not as it should"
            raise Denied(503, text) from None
        if user is None:
            raise Denied(401, "Unauthorized: the token is not valid")
        if not allowed:
            raise Denied(403, f'Forbidden: user "{user.username}" cannot {verb} path "{path}"')

    def _is_open(self, path: str) -> bool:
        for allowed in self._settings.always_allow_paths:
            if path == allowed or (allowed.endswith("*") and path.startswith(allowed[:-1])):
                return True
        return False

    async def _user(self, token: str, address: str) -> ReviewedUser | None:
        # A digest, so that no token lies around in memory for longer than it is needed.
        key = hashlib.sha256(token.encode()).hexdigest()
        known = self._users.is_known(key)
        with nullcontext() if known else self._waiting_for_review(address):
            return await self._users.get(key, lambda: self._review_token(token))

    @contextmanager
    def _waiting_for_review(self, address: str) -> Iterator[None]:
        here = self._waiting[address]
        if here >= _MOST_WAITING_PER_ADDRESS or self._waiting.total() >= _MOST_WAITING:
            raise Denied(429, "too many tokens are being reviewed: try again")
        self._waiting[address] += 1
        try:
            yield
        finally:
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]

    async def _review_token(self, token: str) -> ReviewedUser | None:
        body = _review("authentication.k8s.io/v1", "TokenReview", {"token": token})
        answer = msgspec.json.decode(await self._ask(TOKEN_REVIEWS, body), type=_TokenReview)
        return answer.status.user if answer.status.authenticated else None

    async def _may(self, user: ReviewedUser, path: str, verb: str) -> bool:
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": [*dict.fromkeys((*user.groups, _AUTHENTICATED))],
            "extra": user.extra or {},
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        body = _review("authorization.k8s.io/v1", "SubjectAccessReview", spec)
        return await self._answers.get(body.decode(), lambda: self._review_access(body))

    async def _review_access(self, body: bytes) -> bool:
        answer = msgspec.json.decode(await self._ask(ACCESS_REVIEWS, body), type=_AccessReview)
        return answer.status.allowed and not answer.status.denied

    async def _ask(self, path: str, body: bytes) -> bytes:
        async with self._at_once:
            return await self._api.post(path, body)


def _token(authorization: str | None) -> str | None:
    if authorization is None or not authorization.lower().startswith(_SCHEME):
        return None
    return authorization[len(_SCHEME) :].strip() or None


def _review(version: str, kind: str, spec: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": version, "kind": kind, "spec": spec})


class _Kept(Generic[V]):
    """Answers by key, each kept for some seconds. Callers that ask at the same time share one."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        #: Apart, so that those who make up tokens push out no token that is good.
        self._yes: OrderedDict[str, tuple[float, V]] = OrderedDict()
        self._no: OrderedDict[str, tuple[float, V]] = OrderedDict()
        self._asking: dict[str, asyncio.Future[V]] = {}

    async def get(self, key: str, ask: Callable[[], Awaitable[V]]) -> V:
        """Returns the kept answer, or a new one.

        Errors are raised to all callers that wait, and are not kept.
        """
        known = self._find(key)
        if known is not None:
            return known[1]
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = asyncio.ensure_future(ask())
            asking.add_done_callback(lambda done: self._keep(key, done))
        # Who goes away does not take the others' answer along.
        return await asyncio.shield(asking)

    def is_known(self, key: str) -> bool:
        return self._find(key) is not None

    def _find(self, key: str) -> tuple[float, V] | None:
        known = self._yes.get(key) or self._no.get(key)
        return known if known is not None and self._clock() < known[0] else None

    def _keep(self, key: str, done: asyncio.Future[V]) -> None:
        del self._asking[key]
        if done.cancelled() or done.exception() is not None:
            return
        self._yes.pop(key, None)
        self._no.pop(key, None)
        kept = self._yes if done.result() else self._no
        kept[key] = self._clock() + self._seconds, done.result()
        if len(kept) > _MOST_KEPT:
            kept.popitem(last=False)
