"""The bodies of requests to the API server, and the parts of its answers that are read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from moorage.documents.json_text import decode_at_any_depth
from moorage.engine.actions import BindPod, PatchPodGroupStatus, PatchPodStatus, PodRef
from moorage.framework.plugin import ClaimWrite, VolumeWrite
from moorage.objects.kinds import KINDS
from moorage.objects.meta import Wire
from moorage.objects.resource_claim import ClaimSpec

_encode = msgspec.json.Encoder().encode

POD = KINDS["Pod"]
VOLUME = KINDS["PersistentVolume"]
CLAIM = KINDS["PersistentVolumeClaim"]
EVENTS = KINDS["Event"]
GROUP = KINDS["PodGroup"]
DEVICE_CLAIM = KINDS["ResourceClaim"]

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
    """The state of a pod: its identity, its node and its phase."""

    metadata: StateMetadata = StateMetadata()
    spec: StateSpec = StateSpec()
    status: StateStatus = StateStatus()


_POD_STATE = msgspec.json.Decoder(PodState)


def read_pod_state(text: bytes) -> PodState:
    """Reads the state of a pod, however deep the object is nested."""
    return decode_at_any_depth(_POD_STATE.decode, text)


class ReadMeta(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    name: str = ""
    resource_version: str = ""
    finalizers: tuple[str, ...] | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[dict[str, Any], ...] | None = None


class ReadStatus(msgspec.Struct, frozen=True, rename="camel"):
    allocation: dict[str, Any] | None = None
    reserved_for: tuple[dict[str, Any], ...] | None = None


class ReadClaim(msgspec.Struct, frozen=True):
    """The part of a claim that is read before it is written."""

    metadata: ReadMeta = ReadMeta()
    spec: ClaimSpec = ClaimSpec()
    status: ReadStatus = ReadStatus()

    def is_made_for(self, uid: str) -> bool:
        return any(owner.get("uid") == uid for owner in self.metadata.owner_references or ())

    def is_for(self, uid: str) -> bool:
        return any(user.get("uid") == uid for user in self.status.reserved_for or ())


_decode_claim = msgspec.json.Decoder(ReadClaim).decode


def read_claim(answer: bytes) -> ReadClaim:
    """Reads the claim in an answer of the API server."""
    claim: ReadClaim = decode_at_any_depth(_decode_claim, answer)
    return claim


def pod_path(pod: PodRef, subresource: str | None = None) -> str:
    return POD.path(pod.namespace, pod.name, subresource)


def encode_binding(action: BindPod) -> bytes:
    """Returns the body of a binding.

    Its uid prevents that another pod of the same name is bound.
    """
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
    """Returns a strategic merge patch, which merges conditions by their type."""
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
    """Returns the path of a pod group, in the API version in which it was read."""
    form = next(each for each in GROUP.forms if each.api_version == group.api_version)
    return form.path(group.namespace, group.name, subresource)


def encode_group_status_patch(action: PatchPodGroupStatus, at: datetime) -> bytes:
    """Returns a strategic merge patch, which merges conditions by their type."""
    condition = action.condition
    written = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": format_time(at),
        **_generation(condition.observed_generation),
    }
    return _encode({"metadata": {"uid": action.group.uid}, "status": {"conditions": [written]}})


def _generation(observed: int) -> dict[str, int]:
    return {"observedGeneration": observed} if observed else {}


def encode_disruption(pod: PodRef, message: str, at: datetime) -> bytes:
    """Returns a patch with the condition that tells a victim why it is deleted."""
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
    """Returns the body of a deletion that spares another object of the same name."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    return _encode(options)


def encode_volume_patch(write: VolumeWrite, resource_version: str) -> bytes:
    """Returns a patch that binds a volume to a claim, unless the volume has changed since."""
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
    """Returns a patch that tells the provisioner the node for which it makes a volume."""
    return _encode({"metadata": {"annotations": {_SELECTED_NODE: write.node_name}}})


def format_time(at: datetime) -> str:
    """Formats a time as the API's Time."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(at: datetime) -> str:
    """Formats a time as the API's MicroTime."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
