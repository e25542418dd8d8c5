"""Hollow nodes for any API server: nodes that stay alive, and pods that run without containers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address

import msgspec

from moorage.client.api import Requests
from moorage.client.api_errors import ApiError
from moorage.client.reflector import Reflector
from moorage.documents.errors import InputError
from moorage.embedded.api.decoding import now_text
from moorage.embedded.api.object_api import utc_now
from moorage.embedded.hollow.hollow_nodes import HollowNodes
from moorage.embedded.hollow.node_devices import slices_of
from moorage.embedded.hollow.node_shapes import (
    FIRST_ADDRESS,
    NodeShape,
    ShapeFile,
    fill_in_name,
    node_names,
    node_of,
)
from moorage.embedded.hollow.pod_life import HollowSettings
from moorage.embedded.kinds.catalogue import catalogue
from moorage.embedded.store.object_store import Json, decode
from moorage.objects.kinds import KINDS
from moorage.objects.meta import ObjectKind

from .hollow_mirror import HollowMirror, HollowWrites

#: Nodes with this label are looked after; those that are made have it.
LABEL = "hollow.moorage.dev/node"
SELECTOR = f"{LABEL}=true"

# So many nodes are made at a time.
_MAKERS = 16
# So many names are printed.
_MOST_NAMES = 3

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class RemoteHollowSettings:
    """The settings of hollow nodes on an API server."""

    hollow: HollowSettings
    #: The nodes that are looked after, by label; empty stands for all.
    selector: str = SELECTOR


@asynccontextmanager
async def _task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group that raises the first failure of its tasks."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures


@asynccontextmanager
async def run_hollow_nodes(
    api: Requests, settings: RemoteHollowSettings
) -> AsyncIterator[HollowNodes]:
    """Runs nodes for as long as the context lasts; existing nodes are known when it begins.

    A failure is raised when the context ends.
    """
    mirror = HollowMirror()
    writes = HollowWrites(api, mirror)
    nodes = HollowNodes(mirror.api, settings.hollow)
    reflectors = [
        _reflect(api, mirror, "Node", {"labelSelector": settings.selector}),
        _reflect(api, mirror, "Pod", {"fieldSelector": "spec.nodeName!="}),
        _reflect(api, mirror, "ResourceClaim", {}),
    ]
    async with _task_group() as group:
        tasks = [group.create_task(each.run()) for each in reflectors]
        tasks.append(group.create_task(writes.run()))
        for each in reflectors:
            await each.synced.wait()
        tasks.append(group.create_task(nodes.run()))
        await nodes.known.wait()
        yield nodes
        for task in tasks:
            task.cancel()


def _reflect(api: Requests, mirror: HollowMirror, kind: str, params: dict[str, str]) -> Reflector:
    given = {name: value for name, value in params.items() if value}
    essential = kind != "ResourceClaim"
    return Reflector(api, KINDS[kind], mirror, params=given, keep_raw=True, essential=essential)


@dataclass(slots=True)
class MadeNodes:
    """What came of making nodes."""

    #: The nodes that are looked after, by label; empty stands for all.
    selector: str = SELECTOR
    new: int = 0
    #: Nodes that exist without the label, by name: they may be real.
    unlabelled: list[str] = field(default_factory=list)

    def describe(self) -> Iterator[str]:
        """Yields a note if nodes that were asked for are not hollow ones."""
        if self.unlabelled:
            count, names = len(self.unlabelled), sorted(self.unlabelled)
            exist = "1 node exists" if count == 1 else f"{count:,} nodes exist"
            some = ", ".join((*names[:_MOST_NAMES], *(["…"] if count > _MOST_NAMES else [])))
            yield f"{exist} without the label {SELECTOR}, left alone: {some}"


async def make_remote_nodes(api: Requests, file: ShapeFile, selector: str = SELECTOR) -> MadeNodes:
    """Makes the nodes of a file that do not exist, with all that belongs to them.

    Nodes that exist without the label are left alone, unless the selector is empty. Raises
    InputError with the first one that is refused.
    """
    made = MadeNodes(selector)
    left = _number_nodes(file)

    async def work() -> None:
        for place, shape, number, address in left:
            await _make_node(api, made, place, shape, number, address)

    async with _task_group() as group:
        for _ in range(_MAKERS):
            group.create_task(work())
    return made


def _number_nodes(file: ShapeFile) -> Iterator[tuple[str, NodeShape, int, str]]:
    first = FIRST_ADDRESS
    for at, shape in enumerate(file.shapes):
        place = f"{file.source}: shapes[{at}]" if file.source else f"shapes[{at}]"
        marked = msgspec.structs.replace(shape, labels={**shape.labels, LABEL: "true"})
        for number, _ in enumerate(node_names(shape)):
            yield place, marked, number, str(IPv4Address(first + number))
        first += shape.count


async def _make_node(
    api: Requests, made: MadeNodes, place: str, shape: NodeShape, number: int, address: str
) -> None:
    node = node_of(shape, number, address, now_text(utc_now()))
    name = node["metadata"]["name"]
    is_new = await _make(api, node, place)
    # Added after the answer: others have counted theirs meanwhile.
    made.new += is_new
    metadata = decode(await api.get(KINDS["Node"].path(name=name)))["metadata"]
    if made.selector and (metadata.get("labels") or {}).get(LABEL) != "true":
        made.unlabelled.append(name)
        return
    for each in (*slices_of(name, metadata["uid"], shape.devices), *_objects_of(shape, name)):
        await _make(api, each, place)


def _objects_of(shape: NodeShape, node: str) -> Iterable[Json]:
    return (fill_in_name(item, node) for item in shape.objects)


async def _make(api: Requests, item: Json, place: str) -> bool:
    """Creates an object unless it exists; returns whether it was created."""
    kind = _find_kind(item)
    title = f"{item.get('kind')} {item['metadata'].get('name', '')!r}"
    if kind is None:
        raise InputError(place, title, f"{item.get('apiVersion')}: kind is not known")
    namespace = item["metadata"].get("namespace", "default") if kind.namespaced else None
    try:
        await api.post(kind.path(namespace), _encode(item))
    except ApiError as error:
        if error.is_already_exists:
            return False
        raise InputError(place, title, error.message) from None
    return True


def _find_kind(item: Json) -> ObjectKind | None:
    wanted = item.get("apiVersion"), item.get("kind")
    for kind in catalogue():
        if (kind.api_version, kind.kind) == wanted:
            return ObjectKind(kind.group, kind.version, kind.kind, kind.plural, kind.namespaced)
    return None
