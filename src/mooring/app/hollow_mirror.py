"""Mirrors nodes, pods and claims of an API server in a store, which hollow kubelets read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from mooring.documents.json_text import decode_at_any_depth
from mooring.embedded.api.kind import ServedKinds
from mooring.embedded.api.object_api import Clock, ObjectApi, key_of, utc_now
from mooring.embedded.hollow.hosts import LEASES
from mooring.embedded.kinds.catalogue import catalogue
from mooring.embedded.request_refusals import RequestRefused
from mooring.embedded.store.object_store import ObjectStore, decode
from mooring.objects.kinds import Object

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
