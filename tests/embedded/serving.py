"""A running server and a client for it, for tests of anything that talks to an API server."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from moorage.embedded.server import Server, ServerSettings, serve
from tests.patience import open_session

Json = dict[str, Any]

#: What servers that many tests share ask for.
TOKEN = "secret"


@dataclass(frozen=True, slots=True)
class Client:
    """Plain HTTP to a server: what was sent and what came back, nothing hidden."""

    running: Server
    session: aiohttp.ClientSession

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """The status code, and the body decoded."""
        data = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        sent = {"Content-Type": kind, **(headers or {})}
        url = self.running.url + path
        async with self.session.request(method, url, data=data, headers=sent) as response:
            text = await response.read()
            if response.content_type != "application/json":
                return response.status, text.decode()
            return response.status, msgspec.json.decode(text)

    async def get(self, path: str, **more: Any) -> Json:
        return await self._well(200, "GET", path, **more)

    async def create(self, path: str, body: Any, **more: Any) -> Json:
        return await self._well(201, "POST", path, body, **more)

    async def put(self, path: str, body: Any, **more: Any) -> Json:
        return await self._well(200, "PUT", path, body, **more)

    async def patch(self, path: str, body: Any, kind: str = "merge") -> Json:
        media = f"application/{kind}-patch+json"
        return await self._well(200, "PATCH", path, body, kind=media)

    async def delete(self, path: str, body: Any = None) -> Json:
        return await self._well(200, "DELETE", path, body)

    async def refused(
        self, code: int, method: str, path: str, body: Any = None, **more: Any
    ) -> Json:
        """The Status that a request is refused with."""
        actual, status = await self.ask(method, path, body, **more)
        assert actual == code, status
        assert status["kind"] == "Status"
        assert status["code"] == code
        return status

    @asynccontextmanager
    async def watch(self, path: str) -> AsyncIterator[AsyncIterator[Json]]:
        """The events of a watch, one by one."""
        async with self.session.get(self.running.url + path) as response:
            assert response.status == 200, await response.text()
            yield (msgspec.json.decode(line) async for line in response.content)

    async def _well(self, code: int, method: str, path: str, body: Any = None, **more: Any) -> Json:
        actual, answer = await self.ask(method, path, body, **more)
        assert actual == code, answer
        return answer


@asynccontextmanager
async def served(settings: ServerSettings | None = None) -> AsyncIterator[Client]:
    """A server on a free port and a client that may do everything."""
    running = await serve(settings or ServerSettings(tls=False))
    headers = {"Authorization": f"Bearer {running.settings.token}"}
    connector = aiohttp.TCPConnector(ssl=_trust(running))
    try:
        async with open_session(headers=headers, connector=connector) as session:
            yield Client(running, session)
    finally:
        await running.stop()


def _trust(running: Server) -> ssl.SSLContext | bool:
    if running.certificate is None:
        return True
    return ssl.create_default_context(cadata=running.certificate.pem.decode())


def pod(name: str, **spec: Any) -> Json:
    """A pod that asks for nothing."""
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def node(name: str, **labels: str) -> Json:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def binding(name: str, to: str, **metadata: str) -> Json:
    return {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": to}}


def service(name: str, **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
SERVICES = "/api/v1/namespaces/default/services"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
