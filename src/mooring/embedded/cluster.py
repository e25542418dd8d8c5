"""The cluster as those see it who run in the same process: the verbs of the API without HTTP.

Resources are named as messages name them: pods, deployments.apps. What is refused raises `Refused`,
with the code and the Status that a client over HTTP would get.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from .api import Api
from .binding import bind
from .deleting import delete
from .eviction import evict
from .listing import list_entries
from .options import Delete, Write
from .selection import Selection, read_fields, read_labels
from .tables import Entry
from .watching import Event, Watch
from .wire import Json

# Small and common enough that nobody should have to name it.
_KEEP = Write()


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which objects of a resource are meant."""

    resource: str
    namespace: str = ""
    labels: str = ""
    fields: str = ""


class Cluster:
    """Creates, reads, changes, deletes, selects and watches objects."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def create(self, resource: str, item: Json, namespace: str = "") -> Json:
        """Stores a new object, and returns it complete."""
        return self._api.create(self._api.kinds[resource], namespace, item).object

    def get(self, resource: str, name: str, namespace: str = "") -> Json:
        return self._api.get(self._api.kinds[resource], namespace, name).object

    def find(self, resource: str, name: str, namespace: str = "") -> Json | None:
        """The object of a name, if there is one."""
        entry = self._api.find(self._api.kinds[resource], namespace, name)
        return entry.object if entry else None

    def update(self, resource: str, item: Json) -> Json:
        """Replaces an object; a conflict if it was changed since it was read."""
        namespace, name = _place(item)
        return self._api.update(self._api.kinds[resource], namespace, name, item).object

    def update_status(self, resource: str, item: Json) -> Json:
        """Replaces the status of an object; a conflict if it was changed since it was read."""
        namespace, name = _place(item)
        return self._api.update_status(self._api.kinds[resource], namespace, name, item).object

    def change(
        self, resource: str, name: str, change: Callable[[Json], None], namespace: str = ""
    ) -> Json:
        """Lets a function change an object in place. Nobody can come in between."""
        item = self.get(resource, name, namespace)
        change(item)
        return self.update(resource, item)

    def change_status(
        self, resource: str, name: str, change: Callable[[Json], None], namespace: str = ""
    ) -> Json:
        """Lets a function change the status of an object in place."""
        item = self.get(resource, name, namespace)
        change(item.setdefault("status", {}))
        return self.update_status(resource, item)

    def delete(
        self, resource: str, name: str, namespace: str = "", options: Delete | None = None
    ) -> bool:
        """Deletes an object; whether it is gone already."""
        kind = self._api.kinds[resource]
        return delete(self._api, kind, namespace, name, options or Delete()).gone

    def select(self, chosen: Chosen) -> tuple[list[Entry], int]:
        """The objects that are chosen, still encoded, and the version to watch from."""
        kind, selection = self._api.kinds[chosen.resource], self._selection(chosen)
        listed = list_entries(self._api.store, kind, selection)
        return listed.entries, listed.version

    def watch(self, chosen: Chosen, version: int) -> AsyncIterator[list[Event]]:
        """What happens to the objects that are chosen after a version, many events at a time."""
        kind, selection = self._api.kinds[chosen.resource], self._selection(chosen)
        return Watch(self._api.store, kind, selection, version).events()

    def bind(self, pod: str, node: str, namespace: str = "default") -> None:
        """Assigns a pod to a node."""
        target = {"kind": "Node", "name": node}
        sent: Json = {"metadata": {"name": pod}, "target": target}
        bind(self._api, namespace, pod, sent, _KEEP)

    def evict(self, pod: str, namespace: str = "default") -> None:
        """Deletes a pod if its disruption budget allows that."""
        evict(self._api, namespace, pod, {"metadata": {"name": pod}}, _KEEP)

    def _selection(self, chosen: Chosen) -> Selection:
        kind = self._api.kinds[chosen.resource]
        labels, orders = read_labels(chosen.labels)
        fields = read_fields(chosen.fields, kind.position)
        return Selection(chosen.namespace, labels, orders, fields)


def _place(item: Json) -> tuple[str, str]:
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
