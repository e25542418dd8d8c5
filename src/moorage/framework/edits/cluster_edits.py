"""Edits of the cluster around a pod: its nodes, and the pods that run there."""

from __future__ import annotations

import msgspec

from moorage.objects.pod import Pod

from .edit import Edit


class Uncordon(Edit, frozen=True):
    """Lets these nodes take pods again."""

    nodes: tuple[str, ...]

    @property
    def text(self) -> str:
        return (
            f"{self.nodes[0]} were uncordoned" if len(self.nodes) == 1 else "they were uncordoned"
        )


class RecoverNodes(Edit, frozen=True):
    """Removes a taint that reports a problem from these nodes."""

    key: str
    value: str
    effect: str
    nodes: tuple[str, ...]

    @property
    def text(self) -> str:
        who = self.nodes[0] if len(self.nodes) == 1 else "they"
        return f"{who} {TROUBLES.get(self.key, f'had no taint {self.key}')}"


#: Taints that a controller puts on nodes and takes away again; to tolerate them is no remedy.
TROUBLES = {
    "node.kubernetes.io/not-ready": "were ready",
    "node.kubernetes.io/unreachable": "were reachable",
    "node.kubernetes.io/memory-pressure": "had no memory pressure",
    "node.kubernetes.io/disk-pressure": "had no disk pressure",
    "node.kubernetes.io/pid-pressure": "had no PID pressure",
    "node.kubernetes.io/network-unavailable": "had a network",
    "node.cloudprovider.kubernetes.io/uninitialized": "were initialized",
}


class PodAt(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that runs on a node."""

    pod: str
    uid: str
    node: str
    priority: int = 0


def pod_at(pod: Pod, node: str) -> PodAt:
    return PodAt(pod.key, pod.uid, node, pod.priority)


class EvictPods(Edit, frozen=True):
    """Evicts these pods."""

    pods: tuple[PodAt, ...]

    @property
    def text(self) -> str:
        count = len(self.pods)
        return f"{self.pods[0].pod} were gone" if count == 1 else f"{count} pods were gone"
