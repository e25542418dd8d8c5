"""The workloads that pods belong to, as people call them."""

from __future__ import annotations

from .pod import Pod

_TEMPLATE_HASH = "pod-template-hash"


def owner_names(pod: Pod) -> dict[str, str]:
    """The workloads that a pod belongs to, by kind.

    The Deployment of a ReplicaSet is known by the name: it ends in the hash that the pods carry.
    """
    if pod.owner is None:
        return {}
    names = {pod.owner.kind: pod.owner.name}
    suffix = f"-{pod.labels.get(_TEMPLATE_HASH, '')}"
    if pod.owner.kind == "ReplicaSet" and len(suffix) > 1 and pod.owner.name.endswith(suffix):
        names["Deployment"] = pod.owner.name.removesuffix(suffix)
    return names


def owner_text(pod: Pod) -> str:
    """The workload of a pod as people call it, or the pod itself."""
    names = owner_names(pod)
    for kind in ("Deployment", *names):
        if kind in names:
            return f"{kind.lower()} {pod.namespace}/{names[kind]}"
    return f"pod {pod.key}"
