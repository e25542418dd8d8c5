"""An API that serves one lease, over a network that may be bad."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moorage.client import ApiError, OutcomeUnknown, Unreachable


@dataclass(frozen=True)
class Trouble:
    """What happens to a request: how long it and its answer travel, and whether they arrive."""

    there: float = 0.0
    back: float = 0.0
    request_lost: bool = False
    answer_lost: bool = False


FINE = Trouble()


class Leases:
    """The server."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self._version = 0
        self.writes: list[dict[str, Any]] = []

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""

    def read(self) -> dict[str, Any]:
        if self.lease is None:
            raise ApiError(404, "NotFound", "no lease")
        return self.lease

    def write(self, lease: dict[str, Any], *, create: bool) -> dict[str, Any]:
        if create and self.lease is not None:
            raise ApiError(409, "AlreadyExists", "there is one")
        if not create:
            sent = lease["metadata"]["resourceVersion"]
            if sent != self.read()["metadata"]["resourceVersion"]:
                raise ApiError(409, "Conflict", "changed")
        self._version += 1
        meta = {**lease["metadata"], "resourceVersion": str(self._version)}
        self.lease = {**lease, "metadata": meta}
        self.writes.append(self.lease["spec"])
        return self.lease


class LeaseApi:
    """One client of it, each of whose requests may meet trouble."""

    def __init__(self, leases: Leases, trouble: Callable[[], Trouble] = lambda: FINE) -> None:
        self._leases = leases
        self._trouble = trouble
        self.requests = 0

    async def get(self, path: str) -> bytes:
        return await self._travel(self._leases.read)

    async def put(self, path: str, body: bytes) -> bytes:
        return await self._travel(lambda: self._leases.write(json.loads(body), create=False))

    async def post(self, path: str, body: bytes) -> bytes:
        return await self._travel(lambda: self._leases.write(json.loads(body), create=True))

    async def _travel(self, act: Callable[[], dict[str, Any]]) -> bytes:
        """The server acts on what has arrived, even if nobody waits for the answer any more."""
        self.requests += 1
        trouble = self._trouble()
        if trouble.request_lost:
            await asyncio.sleep(trouble.there)
            raise Unreachable("no way")
        acting = asyncio.create_task(self._act_later(act, trouble.there))
        done = await asyncio.shield(acting)
        await asyncio.sleep(trouble.back)
        if trouble.answer_lost:
            raise OutcomeUnknown("no answer")
        if isinstance(done, ApiError):
            raise done
        return json.dumps(done).encode()

    async def _act_later(
        self, act: Callable[[], dict[str, Any]], seconds: float
    ) -> dict[str, Any] | ApiError:
        await asyncio.sleep(seconds)
        try:
            return act()
        except ApiError as error:
            return error
