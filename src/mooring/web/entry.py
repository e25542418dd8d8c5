"""Who may look at a page on this machine: a browser that was let in once, or a bearer of a token.

For a server without an API server to ask. The address that is printed has a code which is good for
one browser, once; what it gets is a cookie that only this server sees.
"""

from __future__ import annotations

from hmac import compare_digest
from secrets import token_urlsafe

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from .page import StatusPage

_COOKIE = "mooring-page"
_BEARER = "Bearer "


class Entry:
    """Lets in whoever has the token, or has used the code."""

    def __init__(self, token: str | None = None) -> None:
        #: For programs, as a bearer token.
        self.token = token or token_urlsafe(32)
        #: For a browser: the path to open, below the page's prefix.
        self.path = f"enter/{token_urlsafe(16)}"
        self._session = token_urlsafe(32)
        self._is_used = False

    def guard(self, page: StatusPage, prefix: str) -> Middleware:
        """Keeps everybody else out of everything but the page's files."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            if self._may_enter(request) or page.is_open(request.path, prefix):
                return await handler(request)
            if self._uses_code(request, prefix):
                return self._let_in(request, prefix)
            return web.Response(status=401, text="Unauthorized: a bearer token is required\n")

        return guard

    def _may_enter(self, request: web.Request) -> bool:
        header = request.headers.get("Authorization", "")
        cookie = request.cookies.get(_COOKIE, "")
        return _is(cookie, self._session) or _is(header, _BEARER + self.token)

    def _uses_code(self, request: web.Request, prefix: str) -> bool:
        # Programs that look at addresses before people do, such as chats, ask for their head.
        if request.method != "GET" or self._is_used:
            return False
        return _is(request.path, prefix + self.path)

    def _let_in(self, request: web.Request, prefix: str) -> web.Response:
        self._is_used = True
        response = web.Response(status=303, headers={"Location": prefix})
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
