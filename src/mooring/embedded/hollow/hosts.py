"""The nodes that hollow kubelets run: every node that there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mooring.embedded.api import Api
from mooring.embedded.tables import Entry
from mooring.embedded.wire import Json, now_text
from mooring.objects.decode import reader
from mooring.objects.node import Node
from mooring.objects.pod import Pod

from .heartbeats import Heartbeats
from .node_statuses import LEASES, lease, ready_status, renew, report_ready
from .settings import COEXIST_GATE, HollowSettings

_READ = reader("Node")


@dataclass(slots=True)
class Host:
    """A node and the pods that its kubelet has let in, by key."""

    node: Node
    address: str
    coexists: bool
    pods: dict[str, Pod] = field(default_factory=dict)


class Hosts:
    """Follows the nodes, and does for them what their kubelets would: says that they are well."""

    def __init__(self, api: Api, settings: HollowSettings) -> None:
        self._api = api
        self._settings = settings
        self._nodes, self._leases = api.kinds["nodes"], api.kinds["leases.coordination.k8s.io"]
        self._hosts: dict[str, Host] = {}
        #: What was written here need not be read again.
        self._written: dict[str, int] = {}
        self._heartbeats = Heartbeats(settings, api.clock().timestamp())

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts.values())

    def __len__(self) -> int:
        return len(self._hosts)

    def find(self, name: str) -> Host | None:
        return self._hosts.get(name)

    @property
    def next(self) -> float | None:
        """When a lease is to be renewed."""
        return self._heartbeats.next

    def remove(self, name: str) -> None:
        self._hosts.pop(name, None)
        self._written.pop(name, None)
        self._heartbeats.remove(name)

    def take(self, entry: Entry) -> bool:
        """Takes a node as it is now; whether it is a new one."""
        name = entry.name
        if self._written.get(name) == entry.version:
            return False
        known, item = self._hosts.get(name), entry.object
        host = self._read(entry, item)
        if known is not None:
            host.pods = known.pods
        self._hosts[name] = host
        # What others say of a node stays, except that nobody has heard of it.
        if ready_status(item) == "Unknown" or (known is None and ready_status(item) != "True"):
            self._report(name, item)
        if known is None:
            self._make_lease(name, host.node.uid)
        return known is None

    def renew(self, now: float) -> None:
        """Renews the leases that are due."""
        names = self._heartbeats.due(now)
        moment, interval = self._api.clock(), self._heartbeats.interval
        for name in names:
            if self._api.find(self._leases, LEASES, name) is None:
                self._make_lease(name, self._hosts[name].node.uid)
                continue
            self._api.edit(self._leases, LEASES, name, lambda item: renew(item, moment, interval))

    def _read(self, entry: Entry, item: Json) -> Host:
        node: Node = _READ.build(_READ.one.decode(entry.body))
        gate = node.annotations.get(COEXIST_GATE)
        coexists = self._settings.coexist if gate is None else gate == "true"
        addresses = (item.get("status") or {}).get("addresses") or ()
        internal = (each["address"] for each in addresses if each["type"] == "InternalIP")
        return Host(node, next(internal, "127.0.0.1"), coexists)

    def _report(self, name: str, item: Json) -> None:
        report_ready(item, now_text(self._api.clock()))
        self._written[name] = self._api.edit(self._nodes, "", name, lambda _: item).version

    def _make_lease(self, name: str, uid: str) -> None:
        self._heartbeats.add(name)
        if self._api.find(self._leases, LEASES, name) is None:
            made = renew(lease(name, uid), self._api.clock(), self._heartbeats.interval)
            self._api.create(self._leases, LEASES, made)
