"""What controllers do to the cluster: read what is, write what should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mooring.embedded.api import Api
from mooring.embedded.deleting import delete
from mooring.embedded.errors import Refused
from mooring.embedded.kinds import Kind
from mooring.embedded.options import Delete, Propagation
from mooring.embedded.tables import Entry
from mooring.embedded.wire import Json, now_text

from .cache import PODS, Cache
from .items import Item

_GONE, _CONFLICT = 404, 409


@dataclass(frozen=True, slots=True)
class Cluster:
    """The server, and what is remembered of it."""

    api: Api
    cache: Cache

    @property
    def now(self) -> float:
        return self.api.clock().timestamp()

    @property
    def now_text(self) -> str:
        return now_text(self.api.clock())

    def kind(self, table: str) -> Kind:
        return self.cache.kind(table)

    def read(self, table: str, key: str) -> Json | None:
        """The object of a key as it is now; whoever asks may change it."""
        entry = self.api.store.table(table).entries.get(key)
        return None if entry is None else entry.object

    def create(self, table: str, namespace: str, item: Json) -> Entry:
        return self.api.create(self.kind(table), namespace, item)

    def update(self, table: str, item: Json) -> Entry:
        """Replaces an object, if nobody else has since it was read."""
        metadata = item["metadata"]
        namespace = metadata.get("namespace", "")
        return self.api.update(self.kind(table), namespace, metadata["name"], item)

    def set_status(self, table: str, item: Json, status: Json) -> None:
        """Writes a status if it differs."""
        if item.get("status") == status:
            return
        metadata = item["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        self.api.update_status(self.kind(table), namespace, name, {**item, "status": status})

    def delete(
        self, item: Item, grace_seconds: int | None = None, propagation: Propagation = "Background"
    ) -> None:
        """Deletes the very object that is meant; one that is gone is fine."""
        options = Delete(uid=item.uid, grace_seconds=grace_seconds, propagation=propagation)
        kind = self.kind(item.table)
        try:
            delete(self.api, kind, item.namespace, item.name, options)
        except Refused as error:
            if error.code not in (_GONE, _CONFLICT):
                raise

    def disrupt(self, pod: Item, reason: str, message: str, grace: int | None = None) -> None:
        """Deletes a pod that did nothing wrong, and notes why."""
        item = self.read(PODS, pod.key)
        if item is None or item["metadata"]["uid"] != pod.uid:
            return
        status = item.setdefault("status", {})
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "message": message,
            "lastProbeTime": None,
            "lastTransitionTime": self.now_text,
        }
        others = [
            each for each in status.get("conditions") or () if each["type"] != condition["type"]
        ]
        self.set_status(PODS, item, {**status, "conditions": [*others, condition]})
        self.delete(pod, grace)

    def rewrite_owners(self, item: Item, owners: list[Json]) -> None:
        """Says anew whose an object is."""
        stored = self.read(item.table, item.key)
        if stored is None or stored["metadata"]["uid"] != item.uid:
            return
        _set(stored["metadata"], "ownerReferences", owners)
        self.update(item.table, stored)

    def without_finalizer(self, item: Item, finalizer: str) -> None:
        """Lets go of an object that was waiting for this."""
        stored = self.read(item.table, item.key)
        if stored is None or stored["metadata"]["uid"] != item.uid:
            return
        metadata = stored["metadata"]
        kept = [each for each in metadata.get("finalizers") or () if each != finalizer]
        _set(metadata, "finalizers", kept)
        self.update(item.table, stored)


def _set(metadata: Json, name: str, values: list[Any]) -> None:
    """Sets a list that is absent rather than empty."""
    if values:
        metadata[name] = values
    else:
        metadata.pop(name, None)
