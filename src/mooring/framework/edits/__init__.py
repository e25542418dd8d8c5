"""What could be otherwise about a pod or the cluster, so that the pod fits: changes as data.

An edit tells itself to people, is applied to a pod, and encodes to JSON. Nothing here says which
edits are worth making.
"""

from __future__ import annotations

from mooring.objects.pod import Pod

from .edit import Edit
from .of_cluster import TROUBLES, EvictPods, PodAt, RecoverNodes, Uncordon, pod_at
from .of_holdings import DropHostPort, DropVolume
from .of_metadata import SetAnnotation, SetLabel
from .of_node_rules import AddToleration, DropNodeName, DropNodeRequirement, DropNodeSelector
from .of_pod_rules import DropPodTerm, RaiseMaxSkew, SetCoexistPolicy, SoftenSpread
from .of_requests import AskForDevice, LowerRequest
from .of_standing import RaisePriority, RemoveGates, SetScheduler

__all__ = [
    "TROUBLES",
    "AddToleration",
    "AnyEdit",
    "AskForDevice",
    "DropHostPort",
    "DropNodeName",
    "DropNodeRequirement",
    "DropNodeSelector",
    "DropPodTerm",
    "DropVolume",
    "Edit",
    "EvictPods",
    "LowerRequest",
    "PodAt",
    "RaiseMaxSkew",
    "RaisePriority",
    "RecoverNodes",
    "RemoveGates",
    "SetAnnotation",
    "SetCoexistPolicy",
    "SetLabel",
    "SetScheduler",
    "SoftenSpread",
    "Uncordon",
    "edited",
    "pod_at",
]

AnyEdit = (
    AddToleration
    | LowerRequest
    | DropNodeSelector
    | DropNodeRequirement
    | DropNodeName
    | DropPodTerm
    | RaiseMaxSkew
    | SoftenSpread
    | DropVolume
    | DropHostPort
    | SetCoexistPolicy
    | AskForDevice
    | SetAnnotation
    | SetLabel
    | RemoveGates
    | SetScheduler
    | RaisePriority
    | Uncordon
    | RecoverNodes
    | EvictPods
)


def edited(pod: Pod, edits: tuple[AnyEdit, ...]) -> Pod:
    """The pod after all of the changes that are changes of pods."""
    for edit in edits:
        pod = edit.applied(pod)
    return pod
