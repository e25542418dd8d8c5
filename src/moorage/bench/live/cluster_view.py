"""What the API server reports: pods that are placed, volumes that are chosen, full nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from moorage.bench.measurement import Ledger, PodEntry
from moorage.client import MERGE_PATCH, Api, ApiError
from moorage.objects.decode import Page, Reader
from moorage.objects.kinds import KINDS
from moorage.objects.meta import Condition, ObjectMeta, Wire, failure_to_place
from moorage.objects.quantity import Quantity

from .object_writer import ObjectKey


class _PodMetadata(ObjectMeta, frozen=True):
    finalizers: tuple[str, ...] | None = None


class _PodPlacement(Wire, frozen=True):
    node_name: str = ""


class _PodStatus(Wire, frozen=True):
    conditions: tuple[Condition, ...] | None = None


class PodReport(Wire, frozen=True):
    """The fields of a pod that tell how far it is."""

    metadata: _PodMetadata
    spec: _PodPlacement = _PodPlacement()
    status: _PodStatus = _PodStatus()

    @property
    def is_ending(self) -> bool:
        """Whether it only waits for a kubelet to end it."""
        return self.metadata.deletion_timestamp is not None and not self.metadata.finalizers

    @property
    def refusal(self) -> str | None:
        """Why it was not placed when it was tried last; None if it was not tried."""
        return failure_to_place(self.status.conditions)


POD_REPORT = Reader(PodReport, lambda seen: seen)


class PodNotes:
    """Notes in a ledger what a watch of pods tells."""

    def __init__(
        self,
        ledger: Ledger,
        placed: Callable[[PodEntry], None],
        end: Callable[[PodReport], None],
    ) -> None:
        self._ledger = ledger
        self._placed = placed
        self._end = end
        #: Which entry a pod is, by the identity that the API server gave it: names come again.
        self._uids: dict[str, str] = {}

    def applied(self, item: PodReport, raw: Any) -> None:
        entry = self._entry(item)
        if entry is None:
            return
        if item.spec.node_name:
            if not entry.is_placed:
                self._ledger.mark_placed(entry.uid)
                self._placed(entry)
        elif item.refusal is not None:
            self._ledger.mark_attempted(entry.uid, item.refusal)
        if item.is_ending:
            self._end(item)

    def removed(self, item: PodReport) -> None:
        uid = self._uids.pop(item.metadata.uid, None)
        if uid is not None:
            self._ledger.remove(uid)

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        raise AssertionError(f"{kind} {key}: cannot be read: {problem}")

    def _entry(self, item: PodReport) -> PodEntry | None:
        uid = self._uids.get(item.metadata.uid)
        if uid is None:
            found = self._ledger.find(item.metadata.namespace, item.metadata.name)
            if found is not None:
                self._uids[item.metadata.uid] = found.uid
            return found
        return self._ledger.entries.get(uid)


_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


class _ClaimReference(Wire, frozen=True):
    namespace: str = ""
    name: str = ""


class _VolumeSpec(Wire, frozen=True):
    claim_ref: _ClaimReference | None = None


class VolumeReport(Wire, frozen=True):
    """A volume and the claim that it is meant for."""

    metadata: ObjectMeta
    spec: _VolumeSpec = _VolumeSpec()


VOLUME_REPORT = Reader(VolumeReport, lambda seen: seen)


class _ClaimSpec(Wire, frozen=True):
    volume_name: str = ""


class _Claim(Wire, frozen=True):
    spec: _ClaimSpec = _ClaimSpec()


_CLAIM = msgspec.json.Decoder(_Claim)


class VolumeNotes:
    """Tells which volumes were given to a claim."""

    def __init__(self, given: Callable[[str, ObjectKey], None]) -> None:
        self._given = given

    def applied(self, item: VolumeReport, raw: Any) -> None:
        claim = item.spec.claim_ref
        if claim is not None:
            key = ObjectKey("PersistentVolumeClaim", claim.namespace, claim.name)
            self._given(item.metadata.name, key)

    def removed(self, item: VolumeReport) -> None:
        """Does nothing: claims do not lose their volume in a benchmark."""

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        raise AssertionError(f"{kind} {key}: cannot be read: {problem}")


async def bind_claim(api: Api, volume: str, claim: ObjectKey) -> None:
    """Binds a claim to a volume unless it is bound already, or gone."""
    try:
        if _CLAIM.decode(await api.get(claim.path)).spec.volume_name:
            return
        body = {
            "metadata": {"annotations": {_BIND_COMPLETED: "yes"}},
            "spec": {"volumeName": volume},
        }
        await api.patch(claim.path, msgspec.json.encode(body), MERGE_PATCH)
        bound = msgspec.json.encode({"status": {"phase": "Bound"}})
        await api.patch(f"{claim.path}/status", bound, MERGE_PATCH)
    except ApiError as error:
        if not error.is_not_found:
            raise


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
        page = decoder.decode(await api.get(KINDS[kind].path(), params))
        for item in page.items or ():
            yield item
        if not page.metadata.go_on:
            return
        params["continue"] = page.metadata.go_on


@cache
def _amount(text: str) -> int:
    return Quantity.parse(text).milli
