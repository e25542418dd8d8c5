"""The nodes that hollow kubelets run: every node that there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

from moorage.embedded.api.decoding import now_text
from moorage.embedded.api.metadata import set_condition
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.store.object_store import Json, StoredObject
from moorage.objects.decode import reader
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.pod_refusal import Admit
from moorage.objects.resources import is_extended

from .pod_life import KUBELET, HollowSettings, images_in

LEASES = "kube-node-lease"

_READY = {"reason": "KubeletReady", "message": "hollow kubelet is posting ready status"}
_WELL = (
    ("MemoryPressure", "KubeletHasSufficientMemory"),
    ("DiskPressure", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "KubeletHasSufficientPID"),
)

#: A lease is good for as many renewals as that of a real kubelet.
_MISSED_RENEWALS = 4


def ready_status(node: Json) -> str:
    """Returns the status of a node's Ready condition; empty if there is none."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return next((each["status"] for each in conditions if each["type"] == "Ready"), "")


def report_ready(node: Json, now: str) -> None:
    """Reports a node as ready and without pressure."""
    status = node.setdefault("status", {})
    for kind, reason in _WELL:
        set_condition(status, now, type=kind, status="False", reason=reason)
    set_condition(status, now, type="Ready", status="True", **_READY)
    for condition in status["conditions"]:
        # Pods have a time of their last probe, nodes one of their last heartbeat.
        if condition.pop("lastProbeTime", "") is None:
            condition["lastHeartbeatTime"] = now


def follow_capacity(node: Json, before: Mapping[str, str]) -> bool:
    """Makes extended resources allocatable as capacity says; returns whether that changed.

    `before` is the capacity that the node had: what changed since counts, and what is new.
    """
    status = node.get("status") or {}
    capacity = status.get("capacity") or {}
    allocatable = dict(status.get("allocatable") or {})
    for name in filter(is_extended, {*capacity, *before}):
        if name not in capacity:
            allocatable.pop(name, None)
        elif name not in allocatable or before.get(name) != capacity[name]:
            allocatable[name] = capacity[name]
    if allocatable == (status.get("allocatable") or {}):
        return False
    status["allocatable"] = allocatable
    return True


def lease(node: str, uid: str) -> Json:
    """Makes the lease of a node, not yet renewed."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    return {
        "metadata": {"name": node, "namespace": LEASES, "ownerReferences": [owner]},
        "spec": {"holderIdentity": node},
    }


def renew(lease: Json, now: datetime, interval: float) -> Json:
    """Renews a lease for some intervals between renewals."""
    spec: dict[str, Any] = lease["spec"]
    spec["renewTime"] = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec["leaseDurationSeconds"] = round(_MISSED_RENEWALS * interval)
    return lease


# Renewing some at a time costs fewer wake-ups.
_SHORTEST_PAUSE = 0.5


class Heartbeats:
    """The order in which nodes renew their leases."""

    def __init__(self, settings: HollowSettings, now: float) -> None:
        self._settings = settings
        #: In the order in which they were renewed.
        self._nodes: dict[str, None] = {}
        self._looked = now
        self._owed = 0.0

    def add(self, node: str) -> None:
        """Adds a node whose lease was just renewed."""
        self._nodes[node] = None

    def remove(self, node: str) -> None:
        self._nodes.pop(node, None)

    @property
    def interval(self) -> float:
        """The seconds between two renewals of a lease: more when there are many nodes."""
        settings = self._settings
        return max(settings.lease_seconds, len(self._nodes) / settings.most_renewals)

    @property
    def next(self) -> float | None:
        """When to look again."""
        if not self._nodes:
            return None
        left = (1.0 - self._owed) * self.interval / len(self._nodes)
        return self._looked + max(_SHORTEST_PAUSE, left)

    def due(self, now: float) -> list[str]:
        """Returns the nodes whose leases are due."""
        # A clock that was set back counts as no time; a node is due at most once.
        passed = max(0.0, now - self._looked)
        self._looked = now
        count = len(self._nodes)
        self._owed = min(self._owed + passed * count / self.interval, float(count))
        turns = int(self._owed)
        self._owed -= turns
        names = list(self._nodes)[:turns]
        for name in names:
            del self._nodes[name]
            self._nodes[name] = None
        return names


_READ = reader("Node")


@dataclass(slots=True)
class Host:
    """A node and the pods that its kubelet has admitted, by key."""

    node: Node
    address: str
    #: How it admits pods besides, by the policies that it knows.
    policies: Sequence[Admit]
    #: Whether its kubelet is stopped.
    stopped: bool
    capacity: Mapping[str, str]
    #: Images that cannot be pulled there.
    missing_images: frozenset[str] = frozenset()
    pods: dict[str, Pod] = field(default_factory=dict)


class HostChange(Enum):
    """How a node changed since it was last seen."""

    KNOWN = auto()
    NEW = auto()
    #: Its Ready condition was Unknown.
    HEARD_AGAIN = auto()
    STOPPED = auto()


class Hosts:
    """Follows the nodes, reports them as ready and renews their leases."""

    def __init__(self, api: ObjectApi, settings: HollowSettings) -> None:
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

    def take(self, entry: StoredObject) -> HostChange:
        """Takes in a node; one whose kubelet is stopped is not kept."""
        name = entry.name
        if self._written.get(name) == entry.version:
            return HostChange.KNOWN
        known, item = self._hosts.get(name), entry.object
        host = self._read(entry, item)
        if host.stopped:
            # Others know by its lease that it has fallen silent.
            self._make_lease(name, host.node.uid)
            return HostChange.STOPPED
        if known is not None:
            host.pods = known.pods
        self._hosts[name] = host
        # Conditions that others set stay, except Unknown.
        silent = ready_status(item) == "Unknown"
        grows = follow_capacity(item, (known or host).capacity)
        if silent or (known is None and ready_status(item) != "True"):
            report_ready(item, now_text(self._api.clock()))
            self._write(name, item, read_again=grows)
        elif grows:
            self._write(name, item, read_again=True)
        if known is not None:
            return HostChange.HEARD_AGAIN if silent else HostChange.KNOWN
        if not self._make_lease(name, host.node.uid):
            self._renew(name)
        self._heartbeats.add(name)
        return HostChange.NEW

    def renew(self, now: float) -> None:
        """Renews the leases that are due."""
        for name in self._heartbeats.due(now):
            if not self._make_lease(name, self._hosts[name].node.uid):
                self._renew(name)

    def _read(self, entry: StoredObject, item: Json) -> Host:
        node: Node = _READ.build(_READ.one.decode(entry.body))
        policies = self._settings.find_policies(node.annotations)
        addresses = (item.get("status") or {}).get("addresses") or ()
        internal = (each["address"] for each in addresses if each["type"] == "InternalIP")
        stopped = node.annotations.get(KUBELET) == "stopped"
        capacity = (item.get("status") or {}).get("capacity") or {}
        address, missing = next(internal, "127.0.0.1"), images_in(node.annotations)
        return Host(node, address, policies, stopped, capacity, missing)

    def _write(self, name: str, item: Json, *, read_again: bool) -> None:
        version = self._api.edit(self._nodes, "", name, lambda _: item).version
        if not read_again:
            self._written[name] = version

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
