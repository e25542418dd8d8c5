"""The pods of a cluster as a client sees them, kept up to date by a watch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from mooring.client import Reflector
from mooring.client.requests import Requests
from mooring.objects.condition import Condition, refusal
from mooring.objects.decode import Reader
from mooring.objects.kinds import KINDS
from mooring.objects.meta import ObjectMeta, Wire


class _Spec(Wire, frozen=True):
    node_name: str = ""


class _Status(Wire, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] | None = None


class SeenPod(Wire, frozen=True):
    """What the story looks at of a pod."""

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
        return refusal(self.status.conditions) or ""


class Pods:
    """All pods, by namespace and name."""

    def __init__(self, api: Requests) -> None:
        decode = Reader(SeenPod, lambda seen: seen)
        self._reflector = Reflector(api, KINDS["Pod"], self, decode=decode)
        self._known: dict[tuple[str, str], SeenPod] = {}
        self._changed = asyncio.Event()

    def __iter__(self) -> Iterator[SeenPod]:
        return iter(list(self._known.values()))

    def named(self, name: str) -> SeenPod | None:
        """The pod of that name in the namespace of the story."""
        return self._known.get(("default", name))

    def of(self, app: str) -> list[SeenPod]:
        """Those that belong to a workload of the story."""
        return [pod for pod in self if pod.app == app]

    def placed(self, app: str) -> list[SeenPod]:
        """Those of them that have a node."""
        return [pod for pod in self.of(app) if pod.node]

    async def follow(self) -> None:
        """Watches until cancelled."""
        await self._reflector.run()

    async def change(self) -> None:
        """Returns when something has changed."""
        self._changed.clear()
        await self._changed.wait()

    # What the reflector tells

    def applied(self, item: SeenPod, raw: Any) -> None:
        self._known[item.metadata.namespace, item.name] = item
        self._changed.set()

    def removed(self, item: SeenPod) -> None:
        self._known.pop((item.metadata.namespace, item.name), None)
        self._changed.set()

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        """A pod that cannot be read is none of the story's."""
