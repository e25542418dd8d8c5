"""The actions of the engine. The caller performs them and reports each outcome as an event."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from moorage.framework.device_writes import ClaimRelease, DeviceClaimRef, DeviceWrites
from moorage.framework.plugin import ClaimWrite, VolumeWrite
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup

from .extender_answers import NodeVictims


class PodRef(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A reference to a pod or a group of pods; the uid tells it from another of the same name."""

    namespace: str
    name: str
    uid: str
    kind: str = "Pod"
    api_version: str = "v1"

    @staticmethod
    def to(pod: Pod) -> PodRef:
        return PodRef(pod.namespace, pod.name, pod.uid)

    @staticmethod
    def to_group(group: PodGroup) -> PodRef:
        return PodRef(group.namespace, group.name, group.uid, "PodGroup", group.api_version)


class _Action(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="do", gc=False):
    """An action; `do` names it in JSON."""


class BindPod(_Action, frozen=True, tag="bindPod"):
    """Run the pod on the node. Outcome: `Bound` or `BindingFailed`."""

    pod: PodRef
    node: str
    profile: str
    #: Annotations that the pod gets together with its node.
    annotations: Mapping[str, str] = {}
    #: The URL prefix of the extender that binds it; empty if the bind plugins do.
    extender: str = ""


class PodScheduledCondition(msgspec.Struct, frozen=True, omit_defaults=True):
    """The PodScheduled condition of a pod that could not be placed."""

    reason: str
    message: str
    observed_generation: int = 0
    status: str = "False"


class PatchPodStatus(_Action, frozen=True, tag="patchPodStatus"):
    """Write the changed part of a pod's status. A nomination of None leaves that field alone."""

    pod: PodRef
    condition: PodScheduledCondition | None = None
    nominated_node_name: str | None = None


class PodGroupCondition(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether a group of pods was placed, and why not."""

    type: str
    status: str
    reason: str
    message: str = ""
    observed_generation: int = 0


class PatchPodGroupStatus(_Action, frozen=True, tag="patchPodGroupStatus"):
    """Write the condition of a group of pods."""

    group: PodRef
    condition: PodGroupCondition


class RecordEvent(_Action, frozen=True, tag="recordEvent"):
    """Write an event for people who watch the cluster."""

    pod: PodRef
    type: str
    reason: str
    action: str
    note: str
    profile: str
    related: PodRef | None = None


class EvictPod(_Action, frozen=True, tag="evictPod"):
    """Set the victim's DisruptionTarget condition, then delete it.

    Outcome: `Evicted` or `EvictionFailed`. Never through the eviction subresource, which
    disruption budgets would block.
    """

    pod: PodRef
    preemptor: PodRef
    message: str


class WriteVolumes(_Action, frozen=True, tag="writeVolumes"):
    """Write which volume goes to which claim, and where claims are to be provisioned.

    The volumes and claims show when it has come true; a failure is `BindingFailed`.
    """

    pod: PodRef
    node: str
    volumes: tuple[VolumeWrite, ...] = ()
    claims: tuple[ClaimWrite, ...] = ()


class AskExtender(_Action, frozen=True, tag="askExtender"):
    """Ask an extender about a pod. Outcome: `ExtenderAnswered`."""

    pod: PodRef
    #: Which of the pod's attempts it is, and which question of that attempt.
    attempt: int
    number: int
    #: The extender's place in the configuration in force.
    extender: int
    #: filter, prioritize or preempt.
    verb: str
    #: The nodes in question, in order.
    nodes: tuple[str, ...] = ()
    #: The pods that would be evicted, by node.
    victims: dict[str, NodeVictims] = {}


class WriteClaims(_Action, frozen=True, tag="writeClaims"):
    """Write which devices claims get and that a pod uses them, one claim after the other.

    Outcome: `ClaimsWritten` or `BindingFailed`. The claims show when it has come true.
    """

    pod: PodRef
    node: str
    writes: DeviceWrites


class RevokeClaims(_Action, frozen=True, tag="revokeClaims"):
    """Take a pod that will not be bound out of these claims.

    They keep their devices, except for the claim that was made for extended resources: it is
    deleted. Outcome: `ClaimsRevoked`, as soon as it is known which claims have devices, and never
    before the outcome of the pod's `WriteClaims`.
    """

    pod: PodRef
    claims: tuple[DeviceClaimRef, ...] = ()
    deletes_special: bool = False


class ReleaseClaim(_Action, frozen=True, tag="releaseClaim"):
    """Free the devices of a claim, or delete it, so that its pod may get others.

    The claim shows when it has come true; a failure is `ReleaseFailed`.
    """

    pod: PodRef
    release: ClaimRelease


class Report(_Action, frozen=True, tag="report"):
    """Tell the operators of the scheduler something that they should know.

    Without a profile it concerns all profiles.
    """

    profile: str
    message: str


Action = (
    BindPod
    | PatchPodStatus
    | PatchPodGroupStatus
    | RecordEvent
    | EvictPod
    | WriteVolumes
    | WriteClaims
    | RevokeClaims
    | ReleaseClaim
    | AskExtender
    | Report
)

_NOTE_LIMIT = 1024
_CUT = " ..."

encode = msgspec.json.Encoder().encode


def make_scheduled_event(pod: Pod, node_name: str, profile: str) -> RecordEvent:
    """Makes the event that a pod was bound."""
    note = f"Successfully assigned {pod.key} to {node_name}"
    return RecordEvent(PodRef.to(pod), "Normal", "Scheduled", "Binding", note, profile)


def make_failure_event(pod: Pod, message: str, profile: str) -> RecordEvent:
    """Makes the event that a pod could not be placed, with a message cut to an event's size."""
    note = truncate(message)
    return RecordEvent(PodRef.to(pod), "Warning", "FailedScheduling", "Scheduling", note, profile)


def make_device_wait_event(pod: Pod, node_name: str, profile: str) -> RecordEvent:
    """Makes the event that drivers must prepare devices before a pod can be bound."""
    note = f"waiting for binding conditions for device on node {node_name}"
    ref = PodRef.to(pod)
    return RecordEvent(ref, "Normal", "BindingConditionsPending", "Scheduling", note, profile)


def make_preemption_event(
    victim: PodRef, preemptor: PodRef, node_name: str, profile: str, suffix: str = ""
) -> RecordEvent:
    """Makes the event, on the victim, that a pod or a group preempted it."""
    kind, node = ("pod", node_name) if preemptor.kind == "Pod" else ("podgroup", "cluster")
    note = f"Preempted by {kind} {preemptor.uid} on node {node}{suffix}"
    return RecordEvent(victim, "Normal", "Preempted", "Preempting", note, profile, preemptor)


def truncate(message: str) -> str:
    """Returns the message, or as much of it as fits the note of an event."""
    encoded = message.encode()
    if len(encoded) <= _NOTE_LIMIT:
        return message
    return encoded[: _NOTE_LIMIT - len(_CUT)].decode(errors="ignore") + _CUT
