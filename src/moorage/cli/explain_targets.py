"""What `moorage explain` explains: a pod, a workload, a gang, a node, or all pods that wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from moorage.documents.errors import InputError
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.workload import owner_names

from .rendering import count

# What people call the kinds; the kind of a pod's owner says the same.
_KINDS = {
    **dict.fromkeys(("pod", "pods", "po"), "Pod"),
    **dict.fromkeys(("node", "nodes", "no"), "Node"),
    **dict.fromkeys(("deployment", "deployments", "deploy"), "Deployment"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "ReplicaSet"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "StatefulSet"),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), "DaemonSet"),
    **dict.fromkeys(("job", "jobs"), "Job"),
    **dict.fromkeys(("podgroup", "podgroups", "pg"), "PodGroup"),
    **dict.fromkeys(
        ("replicationcontroller", "replicationcontrollers", "rc"), "ReplicationController"
    ),
}


@dataclass(frozen=True, slots=True)
class ExplainTarget:
    """What to explain. An empty name stands for all pods that wait."""

    kind: str
    namespace: str
    name: str

    @property
    def key(self) -> str:
        return self.name if self.kind == "Node" else f"{self.namespace}/{self.name}"

    @property
    def text(self) -> str:
        return f"{self.kind.lower()} {self.key}"


def parse_target(text: str, namespace: str) -> ExplainTarget:
    """Reads NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME."""
    first, _, rest = text.partition("/")
    kind = _KINDS.get(first.lower()) if rest else None
    if kind is not None:
        text = rest
    space, _, name = text.rpartition("/")
    return ExplainTarget(kind or "Pod", space or namespace, name)


def find_pod(pods: Sequence[Pod], target: ExplainTarget) -> Pod:
    """Returns the pod of that name.

    Raises InputError with the most similar name.
    """
    for pod in pods:
        if pod.key == target.key:
            return pod
    raise not_found(target, [pod.key for pod in pods], "pod")


def find_node(nodes: Sequence[Node], target: ExplainTarget) -> Node:
    """Returns the node of that name.

    Raises InputError with the most similar name.
    """
    for node in nodes:
        if node.name == target.name:
            return node
    raise not_found(target, [node.name for node in nodes], "node")


def find_pods_of(pods: Sequence[Pod], target: ExplainTarget) -> list[Pod]:
    """Returns the pods of a workload; raises InputError if it has none."""
    by_owner: dict[str, list[Pod]] = {}
    for pod in pods:
        name = owner_names(pod).get(target.kind)
        if name is not None:
            by_owner.setdefault(f"{pod.namespace}/{name}", []).append(pod)
    if target.key not in by_owner:
        raise not_found(target, by_owner, target.kind.lower(), " with pods")
    return by_owner[target.key]


def not_found(
    target: ExplainTarget, known: Iterable[str], what: str, which: str = ""
) -> InputError:
    """Makes the error that suggests the most similar name."""
    keys = list(known)
    text = f"not found among {count(len(keys), what)}{which}"
    likely = [key for key in keys if key.rpartition("/")[2] == target.name][:1]
    likely = likely or get_close_matches(target.key, keys, n=1)
    return InputError(target.text, f"{text}; did you mean {likely[0]}?" if likely else text)
