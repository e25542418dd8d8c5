"""What is asked of an API server, be it over HTTP or in the same process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

Params = Mapping[str, str | int]


class Requests(Protocol):
    """Paths and bodies as the Kubernetes API has them; failures are raised as ClientError."""

    async def get(self, path: str, params: Params | None = None) -> bytes: ...

    async def post(self, path: str, body: bytes, params: Params | None = None) -> bytes: ...

    async def put(self, path: str, body: bytes) -> bytes: ...

    async def patch(self, path: str, body: bytes, content_type: str) -> bytes: ...

    async def delete(self, path: str, body: bytes | None = None) -> bytes: ...

    def watch(self, path: str, params: Params) -> AsyncGenerator[bytes, None]:
        """The lines of a watch until the server ends it."""
