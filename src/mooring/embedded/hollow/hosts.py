"""The nodes that hollow kubelets run: every node that there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from mooring.embedded.api import Api
from mooring.embedded.tables import Entry
from mooring.embedded.wire import Json, now_text
from mooring.objects.decode import reader
from mooring.objects.node import Node
from mooring.objects.pod import Pod

from .heartbeats import Heartbeats
from .node_statuses import LEASES, lease, ready_status, renew, report_ready
from .settings import COEXIST_GATE, KUBELET, HollowSettings

_READ = reader("Node")


@dataclass(slots=True)
class Host:
    """A node and the pods that its kubelet has let in, by key."""

    node: Node
    address: str
    coexists: bool
    #: Whether its kubelet is stopped.
    stopped: bool
    pods: dict[str, Pod] = field(default_factory=dict)


class Taken(Enum):
    """What became of a node that was taken."""

    KNOWN = auto()
    NEW = auto()
    #: Somebody had given up on it.
    HEARD_AGAIN = auto()
    STOPPED = auto()


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

    def take(self, entry: Entry) -> Taken:
        """Takes a node as it is now; one that is stopped is not kept."""
        name = entry.name
        if self._written.get(name) == entry.version:
            return Taken.KNOWN
        known, item = self._hosts.get(name), entry.object
        host = self._read(entry, item)
        if host.stopped:
            # Others know by its lease that it has fallen silent.
            self._make_lease(name, host.node.uid)
            return Taken.STOPPED
        if known is not None:
            host.pods = known.pods
        self._hosts[name] = host
        # What others say of a node stays, except that nobody has heard of it.
        silent = ready_status(item) == "Unknown"
        if silent or (known is None and ready_status(item) != "True"):
            self._report(name, item)
        if known is not None:
            return Taken.HEARD_AGAIN if silent else Taken.KNOWN
        if not self._make_lease(name, host.node.uid):
            self._renew(name)
        self._heartbeats.add(name)
        return Taken.NEW

    def renew(self, now: float) -> None:
        """Renews the leases that are due."""
        for name in self._heartbeats.due(now):
            if not self._make_lease(name, self._hosts[name].node.uid):
                self._renew(name)

    def _read(self, entry: Entry, item: Json) -> Host:
        node: Node = _READ.build(_READ.one.decode(entry.body))
        gate = node.annotations.get(COEXIST_GATE)
        coexists = self._settings.coexist if gate is None else gate == "true"
        addresses = (item.get("status") or {}).get("addresses") or ()
        internal = (each["address"] for each in addresses if each["type"] == "InternalIP")
        stopped = node.annotations.get(KUBELET) == "stopped"
        return Host(node, next(internal, "127.0.0.1"), coexists, stopped)

    def _report(self, name: str, item: Json) -> None:
        report_ready(item, now_text(self._api.clock()))
        self._written[name] = self._api.edit(self._nodes, "", name, lambda _: item).version

    def _make_lease(self, name: str, uid: str) -> bool:
        """Makes the lease of a node, unless there is one."""
        if self._api.find(self._leases, LEASES, name) is not None:
            return False
        made = renew(lease(name, uid), self._api.clock(), self._heartbeats.interval)
        self._api.create(self._leases, LEASES, made)
        return True

    def _renew(self, name: str) -> None:
        moment, interval = self._api.clock(), self._heartbeats.interval
        self._api.edit(self._leases, LEASES, name, lambda item: renew(item, moment, interval))
