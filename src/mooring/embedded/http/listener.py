"""The HTTP server underneath: even what is not HTTP is answered with a Status."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from mooring.embedded.errors import Refused, bad_request

from .answers import failure

_LOG = logging.getLogger(__name__)

#: What the largest request may have.
MAX_BODY_BYTES = 3 * 1024 * 1024

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class _Connection(web.RequestHandler):
    """A connection. Its errors are those of requests that could not even be read."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("an answer is under way already")
        if status < 500:
            _LOG.debug("unreadable request: %s", message)
            response = failure(bad_request("the request is not HTTP that can be read"))
        else:
            _LOG.error("a connection failed", exc_info=exc)
            response = failure(Refused(500, "InternalError", "Internal error occurred"))
        response.force_close()
        return response


class Listener(web.Server):
    """Passes what can be read to the one who answers."""

    def __init__(self, answer: Answer) -> None:
        # A client that goes away takes its request with it, so that no watch outlives it.
        super().__init__(answer, request_factory=_request, handler_cancellation=True)

    def __call__(self) -> web.RequestHandler:
        # No log of accesses: aiohttp documents None for that, and types it otherwise.
        silent: Any = None
        return _Connection(self, loop=asyncio.get_running_loop(), access_log=silent)


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(
        message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES
    )
