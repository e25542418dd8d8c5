"""What is sent to the API server, and the little that is read of its answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from mooring.documents.json_text import decode_at_any_depth
from mooring.engine.actions import BindPod, PatchPodGroupStatus, PatchPodStatus, PodRef
from mooring.framework.plugin import ClaimWrite, VolumeWrite
from mooring.objects.kinds import KINDS
from mooring.objects.meta import Wire

_encode = msgspec.json.Encoder().encode

POD = KINDS["Pod"]
VOLUME = KINDS["PersistentVolume"]
CLAIM = KINDS["PersistentVolumeClaim"]
EVENTS = KINDS["Event"]
GROUP = KINDS["PodGroup"]

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


class StateMetadata(Wire, frozen=True):
    """What is read of an object's metadata."""

    uid: str = ""
    resource_version: str = ""


class StateSpec(Wire, frozen=True):
    """What is read of a pod's spec."""

    node_name: str = ""


class StateStatus(Wire, frozen=True):
    """What is read of a pod's status."""

    phase: str = ""


class PodState(Wire, frozen=True):
    """Where a pod stands: which one it is, on which node, and how far it has run."""

    metadata: StateMetadata = StateMetadata()
    spec: StateSpec = StateSpec()
    status: StateStatus = StateStatus()


_POD_STATE = msgspec.json.Decoder(PodState)


def read_pod_state(text: bytes) -> PodState:
    """What is read of a pod, however deep it is nested."""
    return decode_at_any_depth(_POD_STATE.decode, text)


def pod_path(pod: PodRef, subresource: str | None = None) -> str:
    return POD.path(pod.namespace, pod.name, subresource)


def encode_binding(action: BindPod) -> bytes:
    """The uid keeps another pod that has taken the name from being bound."""
    pod = action.pod
    metadata: dict[str, Any] = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    if action.annotations:
        # The API server adds them to the pod.
        metadata["annotations"] = action.annotations
    return _encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"kind": "Node", "name": action.node},
        }
    )


def encode_status_patch(action: PatchPodStatus, at: datetime) -> bytes:
    """A strategic merge patch: conditions are merged by their type."""
    status: dict[str, Any] = {}
    if action.nominated_node_name is not None:
        # An empty name takes the field away.
        status["nominatedNodeName"] = action.nominated_node_name or None
    if action.condition is not None:
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": action.condition.status,
                "reason": action.condition.reason,
                "message": action.condition.message,
                "lastProbeTime": None,
                "lastTransitionTime": format_time(at),
                **_generation(action.condition.observed_generation),
            }
        ]
    return _encode({"metadata": {"uid": action.pod.uid}, "status": status})


def group_path(group: PodRef, subresource: str | None = None) -> str:
    """Where a group of pods is, in the API version in which it was read."""
    form = next(each for each in GROUP.forms if each.api_version == group.api_version)
    return form.path(group.namespace, group.name, subresource)


def encode_group_status_patch(action: PatchPodGroupStatus, at: datetime) -> bytes:
    """A strategic merge patch: conditions are merged by their type."""
    condition = action.condition
    told = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": format_time(at),
        **_generation(condition.observed_generation),
    }
    return _encode({"metadata": {"uid": action.group.uid}, "status": {"conditions": [told]}})


def _generation(observed: int) -> dict[str, int]:
    return {"observedGeneration": observed} if observed else {}


def encode_disruption(pod: PodRef, message: str, at: datetime) -> bytes:
    """Tells a victim, before it is deleted, why."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": format_time(at),
    }
    return _encode({"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}})


def encode_deletion(uid: str) -> bytes:
    """Deletes this very object, not another of its name."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    return _encode(options)


def encode_volume_patch(write: VolumeWrite, resource_version: str) -> bytes:
    """Binds a volume to a claim, unless the volume changed since it was read."""
    return _encode(
        {
            "metadata": {
                "resourceVersion": resource_version,
                "annotations": {_BOUND_BY_CONTROLLER: "yes"},
            },
            "spec": {
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": write.claim_namespace,
                    "name": write.claim_name,
                    "uid": write.claim_uid,
                }
            },
        }
    )


def encode_claim_patch(write: ClaimWrite) -> bytes:
    """Tells the provisioner for which node a volume is to be made."""
    return _encode({"metadata": {"annotations": {_SELECTED_NODE: write.node_name}}})


def format_time(at: datetime) -> str:
    """As the API writes a Time."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(at: datetime) -> str:
    """As the API writes a MicroTime."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
