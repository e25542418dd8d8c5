"""Decides who may look at a page on this machine: a browser that was let in, or a token bearer.

It serves where there is no API server to ask. The printed address contains a code, which is valid
for a quarter of an hour. A browser that opens it gets a cookie that only this server sees. After
that time, or with a wrong code, the browser gets to the page, which asks for the token.
"""

from __future__ import annotations

from collections.abc import Callable
from hmac import compare_digest
from secrets import token_urlsafe
from time import monotonic

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from .page import StatusPage

_COOKIE = "moorage-page"
_BEARER = "Bearer "
_ENTER = "enter/"

# The code is part of an address, which browsers and chats keep: so it is not good for ever.
_CODE_SECONDS = 15 * 60.0


class PageAccess:
    """Lets in clients that have the token, or that opened the address with the code in time."""

    def __init__(self, token: str | None = None, clock: Callable[[], float] = monotonic) -> None:
        #: For programs, as a bearer token.
        self.token = token or token_urlsafe(32)
        #: For a browser: the path to open, below the page's prefix.
        self.path = f"{_ENTER}{token_urlsafe(16)}"
        self._session = token_urlsafe(32)
        self._clock = clock
        self._code_ends = clock() + _CODE_SECONDS

    def guard(self, page: StatusPage, prefix: str) -> Middleware:
        """Refuses all other clients, except for the page's files."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.method == "GET" and request.path.startswith(prefix + _ENTER):
                return self._open_page(request, prefix)
            if self._may_enter(request) or page.is_open(request.path, prefix):
                return await handler(request)
            return web.Response(status=401, text="Unauthorized: a bearer token is required\n")

        return guard

    def _may_enter(self, request: web.Request) -> bool:
        header = request.headers.get("Authorization", "")
        cookie = request.cookies.get(_COOKIE, "")
        return _is(cookie, self._session) or _is(header, _BEARER + self.token)

    def _open_page(self, request: web.Request, prefix: str) -> web.Response:
        """Redirects to the page, with a cookie if the code is right and still valid."""
        response = web.Response(status=303, headers={"Location": prefix})
        if self._clock() < self._code_ends and _is(request.path, prefix + self.path):
            response.set_cookie(
                _COOKIE,
                self._session,
                path=prefix,
                httponly=True,
                samesite="Strict",
                secure=request.secure,
            )
        return response


def _is(given: str, wanted: str) -> bool:
    # Bytes that are no text reach us as surrogates.
    return compare_digest(given.encode(errors="surrogateescape"), wanted.encode())
