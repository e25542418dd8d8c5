"""Namespaces and nodes, services and the small kinds around them."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from mooring.embedded.errors import (
    Fault,
    forbidden_field,
    invalid_value,
    required,
    unsupported,
)
from mooring.embedded.names import label_faults, label_name_faults

from .container_faults import amount_faults
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
        item.setdefault("spec", {})
        status = item.setdefault("status", {})
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
    """Services get no addresses here: nothing would listen on them."""

    status = True

    def default(self, item: Json) -> None:
        spec = item.setdefault("spec", {})
        fill(spec, sessionAffinity="None", type="ClusterIP", internalTrafficPolicy="Cluster")
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
        headless = spec["type"] == "ExternalName" or spec.get("clusterIP") == "None"
        if not spec.get("ports") and not headless:
            yield required("spec.ports")
        yield from label_faults("spec.selector", part(spec, "selector"))


class Secrets(Rules):
    def default(self, item: Json) -> None:
        fill(item, type="Opaque")
        written = item.pop("stringData", None)
        if written:
            item["data"] = {**part(item, "data"), **{k: _base64(v) for k, v in written.items()}}


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


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
