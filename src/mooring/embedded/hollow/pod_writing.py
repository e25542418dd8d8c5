"""What kubelets write about pods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mooring.embedded.api import Api
from mooring.embedded.deleting import delete
from mooring.embedded.event_objects import Teller, Told, event_object
from mooring.embedded.options import Delete
from mooring.embedded.tables import Entry
from mooring.embedded.wire import Json, now_text
from mooring.objects.coexist import Refusal

from .pod_statuses import TERMINATED, end, reject


class PodWriter:
    """Writes statuses of pods, each of the very pod that is meant."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._kind = api.kinds["pods"]

    @property
    def now(self) -> str:
        return now_text(self._api.clock())

    def find(self, key: str) -> Entry | None:
        return self._api.store.table(self._kind.table).entries.get(key)

    def write(self, key: str, uid: str, change: Callable[[Json], None]) -> Entry | None:
        """Writes the status of a pod; None if it is gone, or another has its name."""
        entry = self.find(key)
        if entry is None:
            return None
        item = entry.object
        if item["metadata"]["uid"] != uid:
            return None
        change(item)
        # Straight to the store: a turn in the life of a pod is always news, so there is no need
        # to compare, and nobody comes in between.
        return self._api.store.put(self._kind.table, key, item)

    def reject(self, key: str, uid: str, node: str, refusal: Refusal) -> None:
        """Tells that a pod is not let in, and why."""
        now = self.now
        entry = self.write(key, uid, partial(reject, refusal=refusal, now=now))
        if entry is None:
            return
        metadata = {"namespace": entry.namespace, "name": entry.name, "uid": uid}
        about = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, "resourceVersion": str(entry.version)},
        }
        told = Told(refusal.reason, refusal.message, "Warning")
        event = event_object(about, told, Teller("kubelet", node), now)
        self._api.create(self._api.kinds["events"], entry.namespace, event)

    def let_go(self, key: str, uid: str) -> None:
        """Tells that a pod that is being deleted has ended, so that it can go."""
        now = self.now
        entry = self.write(key, uid, lambda pod: _interrupt(pod, now))
        if entry is not None:
            options = Delete(grace_seconds=0, uid=uid)
            delete(self._api, self._kind, entry.namespace, entry.name, options)


def _interrupt(pod: Json, now: str) -> None:
    if pod["status"].get("phase") not in ("Succeeded", "Failed"):
        end(pod, TERMINATED, now)
