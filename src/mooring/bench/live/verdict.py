"""Whether what a scheduler did can be true: no node has more pods than room for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from functools import cache
from typing import Any

import msgspec

from mooring.client import RESOURCES, Api
from mooring.objects.decode import Page
from mooring.objects.meta import ObjectMeta, Wire
from mooring.objects.quantity import Quantity

_PAGE_SIZE = 500

# Those that every pod asks for, or nearly.
_RESOURCES = ("cpu", "memory")


class _Resources(Wire, frozen=True):
    requests: Mapping[str, str] | None = None


class _Container(Wire, frozen=True):
    resources: _Resources = _Resources()


class _PodSpec(Wire, frozen=True):
    node_name: str = ""
    containers: tuple[_Container, ...] = ()


class _Pod(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _PodSpec


class _NodeStatus(Wire, frozen=True):
    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] | None = None


class _Node(Wire, frozen=True):
    metadata: ObjectMeta
    status: _NodeStatus = _NodeStatus()


async def check_nodes(api: Api) -> None:
    """Raises AssertionError if pods on a node ask for more than it has."""
    asked: Counter[tuple[str, str]] = Counter()
    async for pod in _all(api, "Pod", _Pod):
        node = pod.spec.node_name
        asked[node, "pods"] += 1
        for container in pod.spec.containers:
            for resource, text in (container.resources.requests or {}).items():
                asked[node, resource] += _amount(text)
    async for node in _all(api, "Node", _Node):
        has = node.status.allocatable or node.status.capacity
        for resource in ("pods", *_RESOURCES):
            wanted, room = asked[node.metadata.name, resource], _amount(has.get(resource, "0"))
            assert wanted <= room, (
                f"Node {node.metadata.name}: its pods ask for more {resource} than it has"
            )


async def _all(api: Api, kind: str, wire: type[Any]) -> AsyncIterator[Any]:
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Page[wire])  # type: ignore[valid-type]
    params: dict[str, str | int] = {"limit": _PAGE_SIZE}
    while True:
        page = decoder.decode(await api.get(RESOURCES[kind].path(), params))
        for item in page.items or ():
            yield item
        if not page.metadata.go_on:
            return
        params["continue"] = page.metadata.go_on


@cache
def _amount(text: str) -> int:
    return Quantity.parse(text).milli
