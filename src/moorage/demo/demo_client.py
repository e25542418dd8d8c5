"""The client of the demo: it reads and changes the cluster through the API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import yaml

from moorage.client import MERGE_PATCH, Api, Reflector, connect
from moorage.client.api import Requests
from moorage.objects.custom import CustomKind
from moorage.objects.decode import Reader
from moorage.objects.kinds import KINDS
from moorage.objects.meta import Condition, ObjectKind, ObjectMeta, Wire, failure_to_place

#: A folder in which `kubectl apply -f` finds everything that the demo applies.
MANIFESTS = Path(str(files(__package__))) / "manifests"
CLUSTER = MANIFESTS / "cluster.yaml"
SCHEDULER = MANIFESTS / "scheduler.yaml"
#: What the demo needs switched on besides.
GATES = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"


def load_objects(file: str) -> list[dict[str, Any]]:
    """Returns the objects of a file, in its order."""
    return list(yaml.safe_load_all((MANIFESTS / file).read_text()))


Json = dict[str, Any]
_NAMESPACE = "default"
# What manifests/nodediskiostatuses.yaml defines.
DISKS = CustomKind("diskio.moorage.dev", "v1alpha1", "NodeDiskIOStatus", "nodediskiostatuses")
# Not those of the group events.k8s.io: kubectl shows these.
_EVENTS = ObjectKind("", "v1", "Event", "events")
# Dependents go after their owner.
_BACKGROUND = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}


class DemoClient:
    """Makes, changes, deletes and reads objects."""

    def __init__(self, api: Requests) -> None:
        self.api = api

    async def apply(self, file: str) -> None:
        """Makes the objects of a file."""
        for item in load_objects(file):
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
        """Returns the zone of every node."""
        answer = msgspec.json.decode(await self.api.get(KINDS["Node"].path()))
        key = "topology.kubernetes.io/zone"
        nodes = [each["metadata"] for each in answer["items"]]
        return {each["name"]: each["labels"][key] for each in nodes}

    async def events(self, reason: str) -> list[Json]:
        """Returns the events with a reason."""
        params = {"fieldSelector": f"reason={reason}"}
        answer = await self.api.get(_EVENTS.path(_NAMESPACE), params)
        found: list[Json] = msgspec.json.decode(answer)["items"]
        return found


@asynccontextmanager
async def connect_client(kubeconfig: Path) -> AsyncIterator[DemoClient]:
    """A client that does what kubectl does, for as long as the context lasts."""
    async with Api(await connect(str(kubeconfig))) as api:
        yield DemoClient(api)


class _Spec(Wire, frozen=True):
    node_name: str = ""


class _Status(Wire, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] | None = None


class DemoPod(Wire, frozen=True):
    """The fields of a pod that the demo reads."""

    metadata: ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def app(self) -> str:
        """What it belongs to."""
        return (self.metadata.labels or {}).get("app", "")

    @property
    def node(self) -> str:
        return self.spec.node_name

    @property
    def is_daemon(self) -> bool:
        owner = self.metadata.controller
        return owner is not None and owner.kind == "DaemonSet"

    @property
    def refusal(self) -> str:
        """Why it was not placed when it was tried last; empty if it was not tried in vain."""
        return failure_to_place(self.status.conditions) or ""


class PodView:
    """All pods, by namespace and name."""

    def __init__(self, api: Requests) -> None:
        decode = Reader(DemoPod, lambda seen: seen)
        self._reflector = Reflector(api, KINDS["Pod"], self, decode=decode)
        self._known: dict[tuple[str, str], DemoPod] = {}
        self._changed = asyncio.Event()

    def __iter__(self) -> Iterator[DemoPod]:
        return iter(list(self._known.values()))

    def find(self, name: str) -> DemoPod | None:
        """Returns the pod of that name in the namespace of the demo."""
        return self._known.get(("default", name))

    def of(self, app: str) -> list[DemoPod]:
        """Returns those that belong to a workload of the demo."""
        return [pod for pod in self if pod.app == app]

    def with_node(self, app: str) -> list[DemoPod]:
        """Returns those of them that have a node."""
        return [pod for pod in self.of(app) if pod.node]

    async def follow(self) -> None:
        """Watches until cancelled."""
        await self._reflector.run()

    async def change(self) -> None:
        """Returns when something has changed."""
        self._changed.clear()
        await self._changed.wait()

    # The reflector calls these.

    def applied(self, item: DemoPod, raw: Any) -> None:
        self._known[item.metadata.namespace, item.name] = item
        self._changed.set()

    def removed(self, item: DemoPod) -> None:
        self._known.pop((item.metadata.namespace, item.name), None)
        self._changed.set()

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        """Ignores a pod that cannot be read."""
