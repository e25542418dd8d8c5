"""A cluster to schedule on, seen through an API server: makes objects, waits, and judges."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp

from moorage.documents.json_text import decode_at_any_depth
from moorage.objects.kinds import KINDS
from tests.patience import PATIENCE_SECONDS, open_session, until

Manifest = dict[str, Any]

_PODS = "/api/v1/namespaces/default/pods"
_DEVICES = "/apis/resource.k8s.io/v1"
_MERGE = {"Content-Type": "application/merge-patch+json"}


def node(name: str, *, cpu: int = 8, pods: int = 110, **labels: str) -> Manifest:
    has = {"cpu": str(cpu), "memory": "32Gi", "pods": str(pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            "capacity": has,
            "allocatable": has,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(
    name: str, *, cpu: str = "100m", scheduler: str = "default-scheduler", **spec: Any
) -> Manifest:
    container = {
        "name": "main",
        "image": "registry.example/app",
        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": scheduler, "containers": [container], **spec},
    }


@dataclass(frozen=True)
class Verdict:
    """How the pods stand."""

    bound: dict[str, str]
    pending: list[str]

    def on(self, node: str) -> list[str]:
        return sorted(name for name, where in self.bound.items() if where == node)


class Arena:
    """An API server as its administrator sees it."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def request(self, method: str, path: str, body: Any = None, **given: Any) -> Any:
        async with self._session.request(method, path, json=body, **given) as answer:
            told = decode_at_any_depth(json.loads, await answer.read())
            if answer.status >= 300:
                raise AssertionError(f"{method} {path}: {answer.status} {told.get('message')}")
            return told

    async def create(self, items: Iterable[Manifest], width: int = 16) -> None:
        """Creates objects, several at a time, in order."""
        left = iter(items)

        async def worker() -> None:
            for item in left:
                await self.request("POST", KINDS[item["kind"]].path("default"), item)

        await asyncio.gather(*(worker() for _ in range(width)))

    async def delete(self, path: str) -> None:
        await self.request("DELETE", path, {"gracePeriodSeconds": 0})

    async def clear(self) -> None:
        """Takes everything away that a test may have made."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while pods := (await self.request("GET", "/api/v1/pods"))["items"]:
                for each in pods:
                    await self._remove("/api/v1", "pods", each["metadata"])
        for path in (
            "/api/v1/nodes",
            "/apis/events.k8s.io/v1/namespaces/default/events",
            "/apis/coordination.k8s.io/v1/namespaces/moorage-system/leases",
            f"{_DEVICES}/namespaces/default/resourceclaimtemplates",
            f"{_DEVICES}/resourceslices",
            f"{_DEVICES}/deviceclasses",
        ):
            await self.delete(path)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while claims := await self.claims():
                for each in claims:
                    await self._remove(_DEVICES, "resourceclaims", each["metadata"])

    async def _remove(self, group: str, plural: str, meta: Manifest) -> None:
        """Deletes an object, which a controller may change or delete at the same time.

        The controller that would take off a finalizer may have ended with an earlier test.
        """
        path = f"{group}/namespaces/{meta['namespace']}/{plural}/{meta['name']}"
        with suppress(AssertionError):
            if meta.get("finalizers"):
                body = {"metadata": {"finalizers": None}}
                await self.request("PATCH", path, body, headers=_MERGE)
            await self.delete(path)

    async def created(self, folder: str, name: str) -> None:
        """Waits until a custom resource definition is served."""

        async def is_established() -> bool:
            told = await self.request("GET", f"{folder}/{name}")
            conditions = told.get("status", {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

        await until(is_established)

    async def nodes(self) -> list[Manifest]:
        told: Manifest = await self.request("GET", "/api/v1/nodes")
        return list(told["items"])

    async def pods(self) -> list[Manifest]:
        told: Manifest = await self.request("GET", _PODS)
        return list(told["items"])

    async def claims(self) -> list[Manifest]:
        path = f"{_DEVICES}/namespaces/default/resourceclaims"
        told: Manifest = await self.request("GET", path)
        return list(told["items"])

    async def verdict(self) -> Verdict:
        bound, pending = {}, []
        for each in await self.pods():
            name, where = each["metadata"]["name"], each["spec"].get("nodeName", "")
            if where:
                bound[name] = where
            else:
                pending.append(name)
        return Verdict(bound, sorted(pending))

    async def bound(self, count: int, seconds: float = PATIENCE_SECONDS) -> Verdict:
        """Waits until so many pods are bound; tells what it sees if not."""
        verdict = await self.verdict()
        try:
            async with asyncio.timeout(seconds):
                while len(verdict.bound) < count:
                    await asyncio.sleep(0.4)
                    verdict = await self.verdict()
        except TimeoutError:
            left = ", ".join(verdict.pending[:10])
            raise AssertionError(f"{len(verdict.bound)} of {count} bound; left: {left}") from None
        return verdict

    async def all_bound(self, count: int) -> Verdict:
        """Waits until so many pods are bound, and sees that no other is left."""
        verdict = await self.bound(count)
        assert (len(verdict.bound), verdict.pending) == (count, [])
        return verdict

    async def nothing_is_over_committed(self) -> None:
        """What pods ask for on each node is at most what the node has."""
        asked: Counter[tuple[str, str]] = Counter()
        for each in await self.pods():
            where = each["spec"].get("nodeName", "")
            asked[where, "pods"] += 1
            asked[where, "cpu"] += _cpu(each)
        for each in await self.nodes():
            name, has = each["metadata"]["name"], each["status"]["allocatable"]
            assert asked[name, "pods"] <= int(has["pods"]), name
            assert asked[name, "cpu"] <= 1000 * int(has["cpu"]), name

    async def told(self, reason: str, count: int = 1) -> list[Manifest]:
        """Waits until there are so many events of a reason: they are written after the rest."""

        async def are_there() -> list[Manifest]:
            found = await self.events(reason)
            return found if len(found) >= count else []

        return await until(are_there, f"{count} events {reason}")

    async def events(self, reason: str) -> list[Manifest]:
        path = "/apis/events.k8s.io/v1/namespaces/default/events"
        told: Manifest = await self.request("GET", path)
        return [each for each in told["items"] if each["reason"] == reason]


def _cpu(manifest: Mapping[str, Any]) -> int:
    total = 0
    for container in manifest["spec"]["containers"]:
        text = container["resources"]["requests"]["cpu"]
        total += int(text[:-1]) if text.endswith("m") else 1000 * int(text)
    return total


@asynccontextmanager
async def arena(server: str, token: str) -> AsyncIterator[Arena]:
    """Opens the arena behind an API server."""
    async with open_session(
        base_url=server,
        connector=aiohttp.TCPConnector(ssl=False),
        headers={"Authorization": f"Bearer {token}"},
    ) as session:
        yield Arena(session)
