"""Writes objects to an API server, many at a time, and deletes them after a run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from moorage.bench.cases import NotSupported, RunFailed
from moorage.bench.custom_kinds import DEFINITION
from moorage.bench.templates import Manifest
from moorage.client import MERGE_PATCH, Api, ApiError, ClientError
from moorage.objects.kinds import KINDS
from moorage.objects.meta import ObjectKind

# As scheduler_perf does when it makes pods.
_WIDTH = 30

# An update that conflicts with another is tried again on the newer object.
_MOST_TRIES = 10

# What an API server says that does not know a class of priorities yet, and how often and how long
# it is given time to.
_NO_CLASS = "no PriorityClass with name"
_MOST_WAITS, _WAIT_SECONDS = 100, 0.1

# At once, because no kubelet would confirm that a pod has ended.
_AT_ONCE = msgspec.json.encode({"gracePeriodSeconds": 0})

# API servers take the status of these only by itself. A volume whose status is not Available is
# not chosen for a claim, and there is no controller to say so.
_STATUS_APART = frozenset(("PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget"))

# What is there already serves as well, and stays.
_SHARED = frozenset(("Namespace", "PriorityClass", DEFINITION.kind))

# They come before the pod that uses them.
_BEFORE_PODS = frozenset(("PersistentVolume", "PersistentVolumeClaim"))


class ObjectKey(NamedTuple):
    """Which object it is."""

    kind: str
    namespace: str
    name: str
    #: Where it is kept, unless Kubernetes itself knows the kind.
    custom: ObjectKind | None = None

    @property
    def resource(self) -> ObjectKind:
        resource = self.custom or KINDS.get(self.kind)
        if resource is None:
            raise NotSupported(f"objects of kind {self.kind}")
        return resource

    @property
    def path(self) -> str:
        return self.resource.path(self.namespace or None, self.name)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}{'/' * bool(self.namespace)}{self.name}"


class ServerObject(msgspec.Struct):
    """What matters of an object that the API server answers with."""

    metadata: dict[str, Any] = {}
    spec: dict[str, Any] = {}
    status: Any = None


_SERVER_OBJECT = msgspec.json.Decoder(ServerObject)


class ObjectWriter:
    """Creates, replaces and deletes objects; an error names the object."""

    def __init__(self, api: Api, custom: Mapping[str, ObjectKind]) -> None:
        self._api = api
        self._custom = custom
        #: What was made and not deleted since, in that order.
        self.made: dict[ObjectKey, None] = {}
        self._priorities: set[int] = set()

    def key(self, manifest: Manifest) -> ObjectKey:
        kind, metadata = manifest["kind"], manifest["metadata"]
        return ObjectKey(
            kind, metadata.get("namespace", ""), metadata["name"], self._custom.get(kind)
        )

    async def create_all(self, manifests: Iterable[Manifest]) -> None:
        """Makes objects, many at a time; a pod comes after its volume and claim."""
        await self.each(group_by_pod(manifests), self._create_group)

    async def each(self, items: Iterable[Any], write: Any) -> None:
        """Awaits a write for each item, many at a time; the first failure ends them all."""
        left = iter(items)

        async def worker() -> None:
            for item in left:
                await write(item)

        tasks = [asyncio.ensure_future(worker()) for _ in range(_WIDTH)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _create_group(self, group: list[Manifest]) -> None:
        for manifest in group:
            await self.create(manifest)

    async def create(self, manifest: Manifest) -> None:
        priority = _bare_priority(manifest)
        if priority is not None and priority not in self._priorities:
            await self.create(_priority_class(priority))
            self._priorities.add(priority)
        key = self.key(manifest)
        try:
            # In the version in which it is read, because API servers do not serve every other one.
            written = {**manifest, "apiVersion": key.resource.api_version}
            await self._post(key, _body(written))
            self.made[key] = None
            status = manifest.get("status") if key.custom else _status(manifest)
            if status is not None:
                body = msgspec.json.encode({"status": status})
                await self._api.patch(f"{key.path}/status", body, MERGE_PATCH)
        except ApiError as error:
            if not (error.is_already_exists and key.kind in _SHARED):
                raise api_failure(key, error) from error
        except ClientError as error:
            raise api_failure(key, error) from error

    async def _post(self, key: ObjectKey, body: bytes) -> None:
        """Sends an object. An API server may take a while to see the class of a pod's priority."""
        path = key.resource.path(key.namespace or None)
        for _ in range(_MOST_WAITS):
            try:
                await self._api.post(path, body)
                return
            except ApiError as error:
                if not (error.is_forbidden and _NO_CLASS in error.message):
                    raise
            await asyncio.sleep(_WAIT_SECONDS)
        await self._api.post(path, body)

    async def replace(self, manifest: Manifest, subresources: Sequence[str] = ()) -> None:
        """Puts an object in the place of the one of that name, its status too if one is given.

        With subresources only that part of it is replaced, such as `resize`.
        """
        key = self.key(manifest)
        path = "/".join((key.path, *subresources))
        for _ in range(_MOST_TRIES):
            try:
                known = _SERVER_OBJECT.decode(await self._api.get(key.path))
                put = _SERVER_OBJECT.decode(await self._api.put(path, _body(manifest, known)))
                if "status" in manifest:
                    await self._api.put(f"{key.path}/status", _body(manifest, put))
                return
            except ApiError as error:
                if not error.is_conflict:
                    raise api_failure(key, error) from error
            except ClientError as error:
                raise api_failure(key, error) from error
        raise RunFailed(f"{key}: somebody else changed it {_MOST_TRIES} times in a row")

    async def delete(self, key: ObjectKey, *, for_good: bool = False) -> None:
        """Deletes an object if it is there; for good means whatever its finalizers say."""
        try:
            left = _SERVER_OBJECT.decode(await self._api.delete(key.path, _AT_ONCE))
            if left.metadata.get("finalizers"):
                if not for_good:
                    return
                body = b'{"metadata":{"finalizers":null}}'
                await self._api.patch(key.path, body, MERGE_PATCH)
        except ApiError as error:
            if not error.is_not_found:
                raise api_failure(key, error) from error
        except ClientError as error:
            raise api_failure(key, error) from error
        self.made.pop(key, None)
        if key.kind == "PriorityClass":
            self._priorities.clear()


def api_failure(what: object, error: ClientError) -> RunFailed:
    """Makes the error for a request that the API server refused or did not answer."""
    reason = "the API server refused it" if isinstance(error, ApiError) else "no answer"
    return RunFailed(f"{what}: {reason}: {error}")


def group_by_pod(manifests: Iterable[Manifest]) -> Iterator[list[Manifest]]:
    """Each pod after the volumes before it; everything else by itself."""
    group: list[Manifest] = []
    for manifest in manifests:
        group.append(manifest)
        if manifest["kind"] not in _BEFORE_PODS:
            yield group
            group = []
    if group:
        yield group


def _body(manifest: Manifest, known: ServerObject | None = None) -> bytes:
    """Returns the object as it is sent, without uid and node."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "uid"}
    sent = {**manifest, "metadata": metadata}
    priority = _bare_priority(manifest)
    if priority is not None:
        sent["spec"] = {**manifest["spec"], "priorityClassName": _class_name(priority)}
    if known is not None:
        metadata["resourceVersion"] = known.metadata["resourceVersion"]
        if manifest["kind"] == "Pod" and "nodeName" in known.spec:
            sent["spec"] = {**sent["spec"], "nodeName": known.spec["nodeName"]}
    return msgspec.json.encode(sent)


def _bare_priority(manifest: Manifest) -> int | None:
    """Returns the priority of a pod without a class, which API servers refuse."""
    spec = manifest.get("spec") or {}
    if manifest["kind"] != "Pod" or spec.get("priorityClassName"):
        return None
    priority: int | None = spec.get("priority")
    return priority


def _class_name(priority: int) -> str:
    return f"bench-priority-{priority}"


def _priority_class(priority: int) -> Manifest:
    metadata = {"name": _class_name(priority)}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": metadata, "value": priority}


def _status(manifest: Manifest) -> Mapping[str, Any] | None:
    """Returns the status that has to be written by itself, if any."""
    if manifest["kind"] not in _STATUS_APART:
        return None
    status: Mapping[str, Any] | None = manifest.get("status")
    if status is None and manifest["kind"] == "PersistentVolume":
        bound = bool(manifest.get("spec", {}).get("claimRef"))
        return {"phase": "Bound" if bound else "Available"}
    return status


class _List(msgspec.Struct):
    items: list[msgspec.Raw]


async def clean(api: Api, writer: ObjectWriter) -> None:
    """Deletes pods first, then whatever they use, then nodes, then namespaces."""
    for key in list(writer.made):
        if key.kind == "Namespace":
            await _delete_claims(api, writer, key.name)
    order = sorted(reversed(writer.made), key=_rank)
    for _, keys in groupby(order, key=_rank):
        await writer.each(list(keys), lambda key: _delete(api, writer, key))


async def _delete_claims(api: Api, writer: ObjectWriter, namespace: str) -> None:
    """Deletes all claims of devices, because controllers and schedulers make some of them."""
    answer = await api.get(KINDS["ResourceClaim"].path(namespace))
    for raw in msgspec.json.decode(answer, type=_List).items:
        name = _SERVER_OBJECT.decode(raw).metadata["name"]
        await writer.delete(ObjectKey("ResourceClaim", namespace, name), for_good=True)


def _rank(key: ObjectKey) -> int:
    return {"Pod": 0, "Node": 2, "Namespace": 3}.get(key.kind, 1)


async def _delete(api: Api, writer: ObjectWriter, key: ObjectKey) -> None:
    await writer.delete(key, for_good=True)
    if key.kind == "Namespace":
        await _finalize(api, key)


async def _finalize(api: Api, namespace: ObjectKey) -> None:
    """Marks a namespace that is being deleted as empty."""
    body = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": namespace.name},
        "spec": {"finalizers": []},
    }
    try:
        await api.put(f"{namespace.path}/finalize", msgspec.json.encode(body))
    except ApiError as error:
        if not error.is_not_found:
            raise api_failure(namespace, error) from error


async def has_any(api: Api, path: str) -> bool:
    """Whether there is an object at all."""
    return bool(msgspec.json.decode(await api.get(path, {"limit": 1}), type=_List).items)
