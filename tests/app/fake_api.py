"""An API server of which a test says how each request ends."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.client.api_errors import ApiError


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    verb: str
    path: str
    body: Any = None
    content_type: str = ""


def refusal(status: int, reason: str = "", message: str = "no") -> ApiError:
    return ApiError(status, reason, message)


class FakeApi:
    """Answers by script: what was put down for a verb and path, else an empty object."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: dict[tuple[str, str], deque[Any]] = defaultdict(deque)
        #: While set, requests wait here.
        self.gate: asyncio.Event | None = None

    def script(self, verb: str, path: str, *answers: Any) -> None:
        """The next answers: mappings are sent, exceptions raised."""
        self.answers[verb, path].extend(answers)

    def asked(self, verb: str) -> list[Request]:
        return [request for request in self.requests if request.verb == verb]

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        return await self._answer(Request("get", path))

    async def post(self, path: str, body: bytes, params: Mapping[str, str] | None = None) -> bytes:
        return await self._answer(Request("post", path, msgspec.json.decode(body)))

    async def put(self, path: str, body: bytes) -> bytes:
        return await self._answer(Request("put", path, msgspec.json.decode(body)))

    async def patch(self, path: str, body: bytes, content_type: str) -> bytes:
        return await self._answer(Request("patch", path, msgspec.json.decode(body), content_type))

    async def delete(self, path: str, body: bytes | None = None) -> bytes:
        given = None if body is None else msgspec.json.decode(body)
        return await self._answer(Request("delete", path, given))

    async def _answer(self, request: Request) -> bytes:
        self.requests.append(request)
        # A request takes a turn of the loop, as one over a wire does.
        await asyncio.sleep(0)
        if self.gate is not None:
            await self.gate.wait()
        answers = self.answers[request.verb, request.path]
        answer = answers.popleft() if answers else {}
        if isinstance(answer, Exception):
            raise answer
        return msgspec.json.encode(answer)
