"""The builders of `moorage.testing`; every cluster is checked when a test ends."""

from __future__ import annotations

from moorage.cluster import Cluster
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.storage import StorageObject
from moorage.testing.builders import (
    Manifest,
    fill,
    follow_ledgers,
    node,
    node_manifest,
    pod,
    pod_manifest,
)

__all__ = ["EMPTY", "Manifest", "cluster", "made", "node", "node_manifest", "pod", "pod_manifest"]

#: The clusters of the running test: the invariant is checked on each of them when it ends.
made: list[Cluster] = []


def cluster(*objects: Node | Pod | StorageObject) -> Cluster:
    """Builds a cluster as `moorage.testing` does, and has it checked when the test ends."""
    new = Cluster()
    made.append(new)
    follow_ledgers(new)
    fill(new, *objects)
    return new


#: What there is to see in a cluster without anything.
EMPTY = Cluster().nodes
