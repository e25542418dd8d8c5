"""Mirrors an API server in a store that hollow kubelets read, and sends their writes there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from moorage.client.api import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Requests
from moorage.client.api_errors import ApiError, ClientError
from moorage.documents.json_text import decode_at_any_depth
from moorage.embedded.api.kind import ServedKinds
from moorage.embedded.api.object_api import Clock, ObjectApi, key_of, utc_now
from moorage.embedded.hollow.hosts import LEASES
from moorage.embedded.kinds.catalogue import catalogue
from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.store.object_store import Json, ObjectStore, TableChange, decode
from moorage.objects.kinds import KINDS, Object
from moorage.objects.meta import ObjectKind

from . import logs

_log = logs.make_log(__name__)

# The kubelets follow the store in the same process, so little has to be kept for them.
_HISTORY = 20_000

_LEASES = "leases.coordination.k8s.io"
_TABLES = {"Node": "nodes", "Pod": "pods", "ResourceClaim": "resourceclaims.resource.k8s.io"}


class HollowMirror:
    """Takes in what reflectors deliver. Versions in the store are its own."""

    def __init__(self, clock: Clock = utc_now) -> None:
        self.api = ObjectApi(
            ObjectStore(history_limit=_HISTORY), ServedKinds(catalogue(coexist=True)), clock
        )
        #: Whether what is written to the store comes from the API server.
        self.is_mirroring = False
        #: The uids of pods that are being deleted there: later events about them are old.
        self.leaving: set[str] = set()
        self._know_namespace(LEASES)

    def applied(self, item: Object, raw: bytes | msgspec.Raw) -> None:
        kind = self.api.kinds[_TABLES[type(item).__name__]]
        key = key_of(getattr(item, "namespace", "") if kind.namespaced else "", item.name)
        if getattr(item, "uid", "") in self.leaving:
            return
        try:
            stored = kind.read(decode_at_any_depth(decode, bytes(raw)))
        except RequestRefused as refusal:
            self.unreadable(kind.kind, key, refusal.message)
            return
        if kind.namespaced:
            self._know_namespace(key.rpartition("/")[0])
        with self._mirror():
            self.api.store.put(kind.table, key, stored)

    def removed(self, item: Object) -> None:
        kind = self.api.kinds[_TABLES[type(item).__name__]]
        key = key_of(getattr(item, "namespace", "") if kind.namespaced else "", item.name)
        self.leaving.discard(getattr(item, "uid", ""))
        with self._mirror():
            self._remove(kind.table, key)
            if kind.kind == "Node":
                # A new node of that name gets a lease of its own.
                self._remove(self.api.kinds[_LEASES].table, key_of(LEASES, item.name))

    def forget(self, table: str, key: str) -> None:
        """Drops an object that is not needed any more."""
        with self._mirror():
            self._remove(table, key)

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        _log.error("Left out an object that cannot be read", kind=kind, object=key, problem=problem)

    def _know_namespace(self, name: str) -> None:
        """Makes the namespace in the store, because leases and events are written there."""
        kind = self.api.kinds["namespaces"]
        if self.api.find(kind, "", name) is None:
            with self._mirror():
                self.api.store.put(kind.table, name, kind.read({"metadata": {"name": name}}))

    def _remove(self, table: str, key: str) -> None:
        entry = self.api.store.table(table).entries.get(key)
        if entry is not None:
            self.api.store.remove(table, key, entry.object)

    @contextmanager
    def _mirror(self) -> Iterator[None]:
        self.is_mirroring = True
        try:
            yield
        finally:
            self.is_mirroring = False


# So many requests at a time; the client has a pace of its own besides.
_LANES = 32
# A write that did not get through is tried again after so long.
_PAUSE_SECONDS = 1.0

_encode = msgspec.json.Encoder().encode

_NODES, _PODS = "nodes", "pods"
_LEASE_TABLE, _EVENT_TABLE = "leases.coordination.k8s.io", "events"
_EVENTS = ObjectKind("", "v1", "Event", "events")
_LEASE = KINDS["Lease"]

_Target = tuple[str, str]


@dataclass(slots=True)
class _Write:
    """The writes about one object that are to be sent; later ones are merged into it."""

    uid: str = ""
    #: Fields of the status that have changed, and conditions by type.
    status: Json = field(default_factory=dict)
    conditions: dict[str, Json] = field(default_factory=dict)
    #: A lease or an event as a whole.
    whole: Json | None = None
    is_deletion: bool = False

    def add(self, later: _Write) -> None:
        if later.uid != self.uid:
            # Another object has the name now.
            self.status, self.conditions, self.is_deletion = {}, {}, False
        self.uid = later.uid
        self.status |= later.status
        self.conditions |= later.conditions
        self.whole = later.whole or self.whole
        self.is_deletion |= later.is_deletion


class HollowWrites:
    """Sends writes: those about one object in order, and several at a time as one."""

    def __init__(
        self,
        api: Requests,
        mirror: HollowMirror,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._mirror = mirror
        self._sleep = sleep
        self._waiting: dict[_Target, _Write] = {}
        self._under_way: set[_Target] = set()
        self._turns: asyncio.Queue[_Target] = asyncio.Queue()
        store = mirror.api.store
        store.listen(_NODES, lambda change: self._note_status(_NODES, change))
        store.listen(_PODS, lambda change: self._note_status(_PODS, change))
        store.listen(_LEASE_TABLE, lambda change: self._note_whole(_LEASE_TABLE, change))
        store.listen(_EVENT_TABLE, lambda change: self._note_whole(_EVENT_TABLE, change))

    async def run(self) -> None:
        """Sends until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_LANES):
                group.create_task(self._send_all())

    # What is to be sent

    def _note_status(self, table: str, change: TableChange) -> None:
        if self._mirror.is_mirroring:
            return
        after = change.after.object
        before = change.before.object if change.before is not None else {}
        old, new = before.get("status") or {}, after.get("status") or {}
        known = {each["type"]: each for each in old.get("conditions") or ()}
        metadata = after["metadata"]
        write = _Write(
            metadata["uid"],
            {
                name: value
                for name, value in new.items()
                if name != "conditions" and old.get(name) != value
            },
            {
                each["type"]: each
                for each in new.get("conditions") or ()
                if known.get(each["type"]) != each
            },
            is_deletion=table == _PODS and (change.gone or _is_let_go(metadata)),
        )
        if write.is_deletion:
            self._mirror.leaving.add(write.uid)
        self._add((table, change.after.key), write)

    def _note_whole(self, table: str, change: TableChange) -> None:
        if not (self._mirror.is_mirroring or change.gone):
            self._add((table, change.after.key), _Write(whole=change.after.object))

    def _add(self, target: _Target, write: _Write) -> None:
        waiting = self._waiting.get(target)
        if waiting is not None:
            waiting.add(write)
            return
        self._waiting[target] = write
        if target not in self._under_way:
            self._turns.put_nowait(target)

    # Sending

    async def _send_all(self) -> None:
        while True:
            target = await self._turns.get()
            write = self._waiting.pop(target)
            self._under_way.add(target)
            try:
                await self._send(target, write)
            except ApiError as error:
                if not error.is_server_error:
                    self._drop(target, write, error)
                else:
                    await self._put_back(target, write)
            except ClientError:
                await self._put_back(target, write)
            finally:
                self._under_way.discard(target)
            if target in self._waiting:
                self._turns.put_nowait(target)

    async def _put_back(self, target: _Target, write: _Write) -> None:
        await self._sleep(_PAUSE_SECONDS)
        later = self._waiting.get(target)
        if later is not None:
            write.add(later)
        self._waiting[target] = write

    def _drop(self, target: _Target, write: _Write, error: ApiError) -> None:
        self._mirror.leaving.discard(write.uid)
        if not (error.is_not_found or error.is_conflict):
            # The object was deleted or replaced by others: there is nothing left to say of it.
            _log.warning("A write was refused", object=target[1], problem=str(error))

    async def _send(self, target: _Target, write: _Write) -> None:
        table, key = target
        namespace, _, name = key.rpartition("/")
        if table == _EVENT_TABLE:
            self._mirror.forget(table, key)
            await self._api.post(_EVENTS.path(namespace), _encode(_strip(write.whole)))
        elif table == _LEASE_TABLE:
            await self._send_lease(name, _strip(write.whole))
        else:
            kind = KINDS["Node" if table == _NODES else "Pod"]
            await self._send_status(kind, namespace or None, name, write)

    async def _send_status(
        self, kind: ObjectKind, namespace: str | None, name: str, write: _Write
    ) -> None:
        status = dict(write.status)
        if write.conditions:
            status["conditions"] = list(write.conditions.values())
        if status:
            # Of another object with that name the server refuses it.
            body = {"metadata": {"uid": write.uid}, "status": status}
            path = kind.path(namespace, name, "status")
            await self._api.patch(path, _encode(body), STRATEGIC_MERGE_PATCH)
        if write.is_deletion:
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": write.uid}}
            await self._api.delete(kind.path(namespace, name), _encode(options))

    async def _send_lease(self, name: str, lease: Json) -> None:
        path = _LEASE.path(LEASES, name)
        owners = lease["metadata"].get("ownerReferences")
        body = {"metadata": {"ownerReferences": owners}, "spec": lease["spec"]}
        try:
            await self._api.patch(path, _encode(body), MERGE_PATCH)
        except ApiError as error:
            if not error.is_not_found:
                raise
            await self._api.post(_LEASE.path(LEASES), _encode(lease))


def _is_let_go(metadata: Json) -> bool:
    """Whether a pod has ended and only a finalizer keeps it."""
    return "deletionTimestamp" in metadata and metadata.get("deletionGracePeriodSeconds") == 0


def _strip(item: Json | None) -> Json:
    """Returns an object without the fields that an API server sets."""
    made: Json = dict(item or {})
    given: dict[str, Any] = made.get("metadata") or {}
    left_out = ("uid", "resourceVersion", "creationTimestamp")
    made["metadata"] = {key: value for key, value in given.items() if key not in left_out}
    return made
