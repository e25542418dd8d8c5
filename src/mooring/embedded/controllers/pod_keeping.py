"""Making and removing the pods of an owner, and telling of it."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.embedded.errors import Refused
from mooring.embedded.tables import Entry
from mooring.embedded.wire import Json

from .cache import PODS
from .cluster import Cluster
from .items import PodItem
from .recording import Recorder


@dataclass(frozen=True, slots=True)
class PodKeeper:
    """Makes and removes pods for owners of one kind."""

    cluster: Cluster
    recorder: Recorder
    made: str = "Created pod: {pod}"
    removed: str = "Deleted pod: {pod}"

    def create(self, owner: Json, pod: Json) -> Entry:
        try:
            entry = self.cluster.create(PODS, owner["metadata"]["namespace"], pod)
        except Refused as refusal:
            message = f"Error creating: {refusal.message}"
            self.recorder.tell(owner, "FailedCreate", message, "Warning")
            raise
        self._tell(owner, "SuccessfulCreate", self.made, entry.name)
        return entry

    def delete(self, owner: Json, pod: PodItem) -> None:
        self.cluster.delete(pod)
        self._tell(owner, "SuccessfulDelete", self.removed, pod.name)

    def _tell(self, owner: Json, reason: str, text: str, pod: str) -> None:
        message = text.format(pod=pod, owner=owner["metadata"]["name"])
        self.recorder.tell(owner, reason, message)
