"""Hollow nodes over a store whose time the test tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from moorage.embedded.api.kind import ServedKinds
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.api.request_options import DeleteOptions, WriteOptions
from moorage.embedded.hollow.kubelets import Kubelets
from moorage.embedded.hollow.pod_life import HollowSettings
from moorage.embedded.kinds.catalogue import catalogue
from moorage.embedded.kinds.subresources import bind
from moorage.embedded.server import make_initial_objects
from moorage.embedded.store.object_store import ObjectStore
from moorage.embedded.store.queries import Selection, TableWatch, list_entries
from moorage.framework.kubelet_admission import find_admissions
from tests.registered import REGISTRY

Json = dict[str, Any]

_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def conditions(item: Json) -> dict[str, str]:
    """What the conditions of an object say."""
    return {each["type"]: each["status"] for each in item["status"]["conditions"]}


class HollowCluster:
    """Objects and the kubelets that look after them; nothing happens unless time passes."""

    def __init__(
        self, store: ObjectStore | None = None, now: datetime = _BEGINNING, **settings: Any
    ) -> None:
        self.now = now
        self.api = ObjectApi(store or ObjectStore(), ServedKinds(catalogue()), lambda: self.now)
        make_initial_objects(self.api)
        policies = find_admissions(REGISTRY)
        self.kubelets = Kubelets(self.api, HollowSettings(policies=policies, **settings))
        self._watches = {
            name: TableWatch(self.api.store, name, Selection(), self.api.store.version)
            for name in ("nodes", "pods")
        }
        for name in self._watches:
            for entry in list_entries(self.api.store, name, Selection()).entries:
                self._tell(name, entry, gone=False)

    def settle(self) -> None:
        """Tells the kubelets what has happened, until nothing more does."""
        while any([self._told(name) for name in self._watches]):
            pass

    def wait(self, seconds: float) -> None:
        """Lets time pass; everything is done when it is due."""
        self.settle()
        end = self.now + timedelta(seconds=seconds)
        while (due := self.kubelets.next) is not None and due <= end.timestamp():
            self.now = max(self.now, datetime.fromtimestamp(due, UTC))
            self.kubelets.act()
            self.settle()
        self.now = end

    def node(self, name: str = "n", *, annotations: Json | None = None, **has: str) -> None:
        capacity = {"cpu": "4", "memory": "8Gi", "pods": "110", **has}
        metadata = {"name": name, "annotations": annotations or {}}
        node = {"metadata": metadata, "status": {"capacity": capacity}}
        self.api.create(self.api.kinds["nodes"], "", node)
        self.settle()

    def pod(
        self,
        name: str,
        node: str = "n",
        *,
        cpu: str = "1",
        metadata: Json | None = None,
        **spec: Any,
    ) -> None:
        """A pod that goes to a node, whatever a scheduler would think of it."""
        container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
        item = {
            "metadata": {"name": name, **(metadata or {})},
            "spec": {"containers": [container], **spec},
        }
        self.api.create(self.api.kinds["pods"], "default", item)
        target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        bind(self.api, "default", name, target, WriteOptions())
        self.settle()

    def delete(self, name: str, grace: int | None = None) -> None:
        options = DeleteOptions(grace_seconds=grace)
        self.api.delete(self.api.kinds["pods"], "default", name, options)
        self.settle()

    def show(self, name: str) -> Json:
        """A pod as it is now."""
        return self.api.get(self.api.kinds["pods"], "default", name).object

    def phase(self, name: str) -> str:
        """The phase of a pod; empty if there is none of the name."""
        entry = self.api.find(self.api.kinds["pods"], "default", name)
        return str(entry.object["status"]["phase"]) if entry else ""

    def listed(self, resource: str) -> list[Json]:
        table = self.api.store.table(resource)
        return [entry.object for entry in table.in_order()]

    def _told(self, name: str) -> bool:
        events = self._watches[name].ready()
        for event in events:
            self._tell(name, event.entry, gone=event.type == "DELETED")
        return bool(events)

    def _tell(self, name: str, entry: Any, *, gone: bool) -> None:
        take = self.kubelets.take_node if name == "nodes" else self.kubelets.take_pod
        take(entry, gone=gone)
