"""Edits: changes of a pod or the cluster with which the pod would fit, as data.

An edit has a text for people, can be applied to a pod, and encodes to JSON. Plugins propose edits;
nothing here says which are worth making.
"""

from __future__ import annotations

from moorage.objects.pod import Pod

from .cluster_edits import TROUBLES, EvictPods, PodAt, RecoverNodes, Uncordon, pod_at
from .edit import Edit
from .pod_edits import (
    DropHostPort,
    DropVolume,
    RaisePriority,
    RemoveGates,
    SetAnnotation,
    SetLabel,
    SetScheduler,
)
from .request_edits import AskForDevice, LowerRequest
from .rule_edits import (
    AddToleration,
    DropNodeName,
    DropNodeRequirement,
    DropNodeSelector,
    DropPodTerm,
    RaiseMaxSkew,
    SetNodeSelector,
    SoftenSpread,
)

__all__ = [
    "TROUBLES",
    "AddToleration",
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
    "SetLabel",
    "SetNodeSelector",
    "SetScheduler",
    "SoftenSpread",
    "Uncordon",
    "apply_edits",
    "pod_at",
]


def apply_edits(pod: Pod, edits: tuple[Edit, ...]) -> Pod:
    """Returns the pod after all changes of pods."""
    for edit in edits:
        pod = edit.apply(pod)
    return pod
