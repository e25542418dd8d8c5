"""What a signature is made of, found out by what `sign` reads of a pod and of the cluster."""

from __future__ import annotations

from typing import Any, cast

from moorage.cluster import Nodes
from moorage.framework.plugin import Sign, SignedParts
from moorage.framework.pod_trace import WHOLE, PodPath, PodReads, TracedPod
from moorage.objects.coexist import GROUP
from moorage.objects.pod import Pod

# What tells the pods of one template apart.
_OF_ONE_POD = frozenset(
    (
        *("name", "uid", "key", "status", "created", "started", "terminating", "has_place"),
        *("generation", "resource_version", "nominated_node_name"),
    )
)
# Plugins that sign volumes are asked about every pod that has some.
_OF_VOLUMES = frozenset(("storage", "csi_nodes", "volume_use"))


def find_unnamed_parts(plugin: Sign, pod: Pod, nodes: Nodes) -> list[str]:
    """Returns what `sign` reads of a pod or of the cluster that `signs` does not name."""
    signs = plugin.signs
    if signs is None:
        return []
    reads, unnamed = PodReads(), list[str]()
    seen = cast(Nodes, _SignedNodes(nodes, signs, unnamed))
    try:
        plugin.sign(cast(Pod, TracedPod(pod, reads)), seen)
    except Exception:  # noqa: BLE001 - code that cannot handle a traced pod may read anything
        return unnamed
    labels = {*pod.spec.own_label_keys, *(key for key, _ in nodes.labels_that_matter(pod))}
    free = frozenset(("labels", key) for key in labels)
    more = (path for path in reads.paths if path not in free and not _names(signs, path))
    return [*unnamed, *(".".join(("pod", *path)) for path in more)]


def _names(signs: SignedParts, path: PodPath) -> bool:
    if path == WHOLE:
        return True
    if path[0] == "labels":
        # The annotation may name a label, which is signed with it.
        return signs.any_label or GROUP in signs.annotations
    if path[0] == "annotations":
        return len(path) > 1 and path[1] in signs.annotations
    return path[0] not in _OF_ONE_POD


class _SignedNodes:
    """The nodes, of which a signature may be made of what is known of pods of a template."""

    def __init__(self, nodes: Nodes, signs: SignedParts, unnamed: list[str]) -> None:
        self._nodes, self._signs, self._unnamed = nodes, signs, unnamed

    @property
    def whole(self) -> _SignedNodes:
        return self

    def __getattr__(self, name: str) -> Any:
        signs = self._signs
        free = {"labels_that_matter", "labels_version"}
        free |= {"workloads"} if signs.siblings else set()
        free |= _OF_VOLUMES if signs.volumes else set()
        if name not in free:
            self._unnamed.append(f"nodes.{name}")
        return _PlainPods(getattr(self._nodes, name))


class _PlainPods:
    """Something of the cluster, which gets the pod itself where a plugin passes a traced one."""

    def __init__(self, item: Any) -> None:
        self._item = item

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._item, name)
        return _PlainPods(found) if callable(found) or name == "facts" else found

    def __call__(self, *arguments: Any) -> Any:
        plain = [each._pod if type(each) is TracedPod else each for each in arguments]
        return self._item(*plain)
