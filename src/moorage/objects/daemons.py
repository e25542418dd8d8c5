"""Pods that belong to their node: a daemonset's pods, and static ones."""

from __future__ import annotations

from .pod import Pod

#: On the mirror pods by which a kubelet shows its static pods. An API server takes it on pods with
#: a node only, so that no pod can pass for a static one before a scheduler.
MIRROR = "kubernetes.io/config.mirror"


def is_daemonset_pod(pod: Pod) -> bool:
    """Whether a daemonset controls it."""
    owner = pod.owner
    return owner is not None and owner.kind == "DaemonSet"


def is_static_pod(pod: Pod) -> bool:
    """Whether a kubelet runs it of its own accord."""
    return MIRROR in pod.annotations


def is_ordinary(pod: Pod) -> bool:
    """Whether it is neither a daemonset's pod nor a static one."""
    return not (is_daemonset_pod(pod) or is_static_pod(pod))
