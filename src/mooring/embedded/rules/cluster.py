"""Namespaces and nodes, services and the small kinds around them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from mooring.embedded.errors import (
    Fault,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported,
)
from mooring.embedded.names import label_faults, label_name_faults

from .container_faults import PORT_RANGE, amount_faults
from .plain import Json, Rules, fill, part
from .scheduling_faults import taint_faults

NAMESPACE_FINALIZER = "kubernetes"
_NAME_LABEL = "kubernetes.io/metadata.name"


_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
_SYSTEM_PREFIX = "system-"
_HIGHEST_PRIORITY = 1_000_000_000

#: The priorities above all that users may define.
SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


class Namespaces(Rules):
    """A namespace stays until whoever empties it has finalized it."""

    status = True
    status_keeps_metadata = False

    def default(self, item: Json) -> None:
        item["metadata"].setdefault("labels", {})[_NAME_LABEL] = item["metadata"]["name"]

    def created(self, item: Json) -> None:
        item["spec"] = {"finalizers": [NAMESPACE_FINALIZER]}
        item["status"] = {"phase": "Active"}

    def updated(self, item: Json, old: Json) -> None:
        item["spec"] = old.get("spec", {})

    def name_faults(self, name: str) -> Iterator[Fault]:
        yield from label_name_faults("metadata.name", name)

    def is_held(self, item: Json) -> bool:
        return bool(part(item, "spec").get("finalizers"))

    def deleted(self, item: Json) -> None:
        item["status"] = {**part(item, "status"), "phase": "Terminating"}


class Nodes(Rules):
    """Kubelets create nodes with their status, so creation keeps it."""

    status = True
    status_keeps_metadata = False

    def default(self, item: Json) -> None:
        spec, status = item.setdefault("spec", {}), item.setdefault("status", {})
        if not spec.get("taints"):
            spec.pop("taints", None)
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])

    def faults(self, item: Json) -> Iterator[Fault]:
        yield from taint_faults("spec.taints", item["spec"].get("taints") or [])
        for name in ("capacity", "allocatable"):
            amounts = part(part(item, "status"), name)
            yield from amount_faults(f"status.{name}", amounts, named=False)

    def status_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        yield from self.faults(item)


class Services(Rules):
    status = True
    shows_deleted = True

    def default(self, item: Json) -> None:
        spec = item.setdefault("spec", {})
        fill(spec, sessionAffinity="None", type="ClusterIP")
        if spec["type"] != "ExternalName":
            fill(spec, internalTrafficPolicy="Cluster")
        for port in spec.get("ports") or ():
            fill(port, protocol="TCP")
            # No port at all is written as none in JSON and as 0 in protobuf.
            port["targetPort"] = port.get("targetPort") or port.get("port", 0)

    def created(self, item: Json) -> None:
        item["status"] = {"loadBalancer": {}}

    def name_faults(self, name: str) -> Iterator[Fault]:
        yield from label_name_faults("metadata.name", name)

    def faults(self, item: Json) -> Iterator[Fault]:
        spec = item["spec"]
        if spec["type"] not in _SERVICE_TYPES:
            yield unsupported("spec.type", spec["type"], _SERVICE_TYPES)
        named = spec["type"] == "ExternalName"
        if named and not spec.get("externalName"):
            yield required("spec.externalName")
        if not spec.get("ports") and not named and spec.get("clusterIP") != "None":
            yield required("spec.ports")
        yield from _port_faults(spec.get("ports") or ())
        yield from label_faults("spec.selector", part(spec, "selector"))
        address = spec.get("clusterIP", "None")
        if address != "None" and not _is_address(address):
            detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            yield invalid_value("spec.clusterIPs[0]", address, detail)


class Events(Rules):
    """Older than the rule that what is not known is left out: people sort by these fields."""

    def default(self, item: Json) -> None:
        fill(item, eventTime=None, firstTimestamp=None, lastTimestamp=None, source={})
        fill(item, reportingComponent="", reportingInstance="")


class ServiceAccounts(Rules):
    shows_deleted = True


class PriorityClasses(Rules):
    generation = True

    def default(self, item: Json) -> None:
        fill(item, preemptionPolicy="PreemptLowerPriority", value=0)

    def creation_faults(self, item: Json) -> Iterator[Fault]:
        name, value = item["metadata"]["name"], item["value"]
        if name in SYSTEM_PRIORITIES and SYSTEM_PRIORITIES[name] == value:
            return
        if name.startswith(_SYSTEM_PREFIX):
            detail = "priority class names with 'system-' prefix are reserved for system use only"
            yield forbidden_field("metadata.name", detail)
        if value > _HIGHEST_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
            yield forbidden_field("value", detail)

    def faults(self, item: Json) -> Iterator[Fault]:
        policy = item["preemptionPolicy"]
        if policy not in _PREEMPTION_POLICIES:
            yield unsupported("preemptionPolicy", policy, _PREEMPTION_POLICIES)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        if item["value"] != old.get("value", 0):
            yield forbidden_field("value", "may not be changed in an update.")
        if item["preemptionPolicy"] != old.get("preemptionPolicy"):
            detail = "field is immutable"
            yield invalid_value("preemptionPolicy", item["preemptionPolicy"], detail)


def _port_faults(ports: Sequence[Json]) -> Iterator[Fault]:
    names = set()
    for index, port in enumerate(ports):
        at, name = f"spec.ports[{index}]", port.get("name", "")
        if not name and len(ports) > 1:
            yield required(f"{at}.name")
        elif name and name in names:
            yield duplicate(f"{at}.name", name)
        names.add(name)
        for field in ("port", "targetPort"):
            number = port.get(field, 0)
            if isinstance(number, int) and not 1 <= number <= 65535:
                yield invalid_value(f"{at}.{field}", number, PORT_RANGE)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
