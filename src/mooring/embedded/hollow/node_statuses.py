"""What a kubelet reports of its node: that it is ready, and that it is alive."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from mooring.embedded.conditions import set_condition
from mooring.embedded.wire import Json

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
    """What the node's condition Ready says; empty if there is none."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return next((each["status"] for each in conditions if each["type"] == "Ready"), "")


def report_ready(node: Json, now: str) -> None:
    """The node is well."""
    status = node.setdefault("status", {})
    for kind, reason in _WELL:
        set_condition(status, now, type=kind, status="False", reason=reason)
    set_condition(status, now, type="Ready", status="True", **_READY)
    for condition in status["conditions"]:
        # Pods have a time of their last probe, nodes one of their last heartbeat.
        if condition.pop("lastProbeTime", "") is None:
            condition["lastHeartbeatTime"] = now


def lease(node: str, uid: str) -> Json:
    """The lease of a node; nobody has renewed it yet."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    return {
        "metadata": {"name": node, "namespace": LEASES, "ownerReferences": [owner]},
        "spec": {"holderIdentity": node},
    }


def renew(lease: Json, now: datetime, interval: float) -> Json:
    """The lease, renewed, and good for some intervals between renewals."""
    spec: dict[str, Any] = lease["spec"]
    spec["renewTime"] = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec["leaseDurationSeconds"] = round(_MISSED_RENEWALS * interval)
    return lease
