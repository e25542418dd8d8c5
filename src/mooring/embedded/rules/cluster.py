"""Namespaces and nodes, services and the small kinds around them."""

from __future__ import annotations

import base64

from .plain import Json, Rules, WithStatus, fill, part

NAMESPACE_FINALIZER = "kubernetes"
_NAME_LABEL = "kubernetes.io/metadata.name"


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


class Services(Rules):
    """Services get no addresses here: nothing would listen on them."""

    status = True

    def default(self, item: Json) -> None:
        spec = item.setdefault("spec", {})
        fill(spec, sessionAffinity="None", type="ClusterIP", internalTrafficPolicy="Cluster")
        for port in spec.get("ports") or ():
            fill(port, protocol="TCP")
            fill(port, targetPort=port.get("port", 0))

    def created(self, item: Json) -> None:
        item["status"] = {"loadBalancer": {}}


class Budgets(WithStatus):
    """Disruption budgets; their status is a controller's."""


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


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
