"""What the story does to the cluster: as any client, through the API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from mooring.client import MERGE_PATCH, Api, connect
from mooring.client.requests import Requests
from mooring.objects.kinds import KINDS
from mooring.objects.meta import ObjectKind
from mooring.plugins.disk_io_resource import KIND as DISKS

from .cast import objects

Json = dict[str, Any]

_NAMESPACE = "default"
# Not those of the group events.k8s.io: kubectl shows these.
_EVENTS = ObjectKind("", "v1", "Event", "events")
# Dependents go after their owner.
_BACKGROUND = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}


class Client:
    """Makes, changes, deletes and reads objects."""

    def __init__(self, api: Requests) -> None:
        self.api = api

    async def apply(self, file: str) -> None:
        """Makes the objects of a file."""
        for item in objects(file):
            await self.create(item)

    async def create(self, item: Json) -> None:
        path = KINDS[item["kind"]].path(_NAMESPACE)
        await self.api.post(path, msgspec.json.encode(item))

    async def delete(self, kind: str, name: str) -> None:
        path = KINDS[kind].path(_NAMESPACE, name)
        await self.api.delete(path, msgspec.json.encode(_BACKGROUND))

    async def report_disk(self, node: str, status: Json) -> None:
        """Writes what the disks of a node were measured to have."""
        body = msgspec.json.encode({"status": status})
        await self.api.patch(DISKS.path(name=node, subresource="status"), body, MERGE_PATCH)

    async def zones(self) -> dict[str, str]:
        """The zone of every node."""
        answer = msgspec.json.decode(await self.api.get(KINDS["Node"].path()))
        key = "topology.kubernetes.io/zone"
        nodes = [each["metadata"] for each in answer["items"]]
        return {each["name"]: each["labels"][key] for each in nodes}

    async def events(self, reason: str) -> list[Json]:
        """The events with a reason."""
        params = {"fieldSelector": f"reason={reason}"}
        answer = await self.api.get(_EVENTS.path(_NAMESPACE), params)
        found: list[Json] = msgspec.json.decode(answer)["items"]
        return found


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Client]:
    """A client as kubectl is one, for as long as the context lasts."""
    async with Api(await connect(str(kubeconfig))) as api:
        yield Client(api)
