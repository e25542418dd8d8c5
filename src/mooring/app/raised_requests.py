"""Raises the requests of exclusive pods to the size of a node, for cluster autoscalers.

A cluster autoscaler counts requests and does not know the coexist policy. If an exclusive pod
requests what the smallest suitable node has left beside its daemons, the autoscaler gives it a node
of its own, too.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mooring.objects.coexist import is_exclusive, is_ordinary
from mooring.objects.kinds import Object
from mooring.objects.node import Node
from mooring.objects.placement_rules import is_tolerated
from mooring.objects.pod import Pod
from mooring.objects.resources import CPU, MEMORY, format_amount

from . import logs

_log = logs.make_log(__name__)

#: On a pod whose requests were raised: the node that the size was taken from.
ANNOTATION = "scheduling.mooring.dev/raised-requests"

_RAISED = CPU, MEMORY
_KEEPING_OFF = "NoSchedule", "NoExecute"

PodsOn = Callable[[str], Iterable[Pod]]


class NodeSizes:
    """The nodes as a watch delivers them, and what pods could use of each."""

    def __init__(self, pods_on: PodsOn) -> None:
        self._pods_on = pods_on
        self._nodes: dict[str, Node] = {}

    def find_smallest(self, pod: Pod) -> tuple[str, Mapping[str, int]] | None:
        """Returns the smallest node that suits an exclusive pod, and its room beside daemons."""
        asked = dict(pod.spec.requests)
        for node in sorted(filter(lambda each: _suits(pod, each), self._nodes.values()), key=_size):
            room = self._room(node)
            if all(room.get(name, 0) >= asked.get(name, 0) for name in _RAISED):
                return node.name, room
        return None

    def _room(self, node: Node) -> Mapping[str, int]:
        room = Counter(dict(node.allocatable))
        for other in self._pods_on(node.name):
            if not is_ordinary(other):
                room.subtract(dict(other.held.requests))
        return room

    # What the watch delivers

    def applied(self, item: Object, raw: bytes | msgspec.Raw) -> None:
        if isinstance(item, Node):
            self._nodes[item.name] = item

    def removed(self, item: Object) -> None:
        if isinstance(item, Node):
            self._nodes.pop(item.name, None)

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        _log.error("Left out an object that cannot be read", kind=kind, object=key, problem=problem)


def raise_requests(pod: Pod, manifest: Mapping[str, Any], sizes: NodeSizes) -> list[dict[str, Any]]:
    """Returns the JSON patch that raises the requests of a pod; empty if nothing changes.

    Only exclusive pods without a node are changed. Limits stay as they are: the first container
    without a limit for a resource requests what is missing.
    """
    if not is_exclusive(pod) or pod.node_name or pod.spec.resources is not None:
        return []
    found = sizes.find_smallest(pod)
    if found is None:
        return []
    name, room = found
    # Nobody has checked it yet.
    containers = (manifest.get("spec") or {}).get("containers") or []
    patch = [step for resource in _RAISED for step in _raise(pod, containers, resource, room)]
    if patch:
        patch += _annotate(manifest.get("metadata") or {}, name)
    return _merge_parents(containers) + patch if patch else []


def encode_patch(patch: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Returns the fields of a review's answer that carry a patch."""
    if not patch:
        return {}
    text = base64.b64encode(msgspec.json.encode(patch)).decode()
    return {"patchType": "JSONPatch", "patch": text}


def _raise(
    pod: Pod, containers: Sequence[Mapping[str, Any]], resource: str, room: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    missing = room[resource] - dict(pod.spec.requests).get(resource, 0)
    if missing <= 0:
        return
    for at, container in enumerate(pod.spec.containers):
        resources = container.resources
        if resources is None or resource not in (resources.limits or {}):
            own = _own_request(pod, at, resource)
            value = format_amount(resource, own + missing)
            path = f"/spec/containers/{at}/resources/requests/{resource}"
            yield {"op": "add", "path": path, "value": value}
            return


def _own_request(pod: Pod, at: int, resource: str) -> int:
    """Returns the request of one container, in the unit of its column."""
    alone = msgspec.structs.replace(
        pod.spec, containers=(pod.spec.containers[at],), init_containers=None, overhead=None
    )
    return dict(alone.requests).get(resource, 0)


def _merge_parents(containers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Yields steps that make the mappings which later steps write into."""
    steps: list[dict[str, Any]] = []
    for at, container in enumerate(containers):
        resources = container.get("resources")
        if not resources:
            path = f"/spec/containers/{at}/resources"
            steps.append({"op": "add", "path": path, "value": {"requests": {}}})
        elif not resources.get("requests"):
            path = f"/spec/containers/{at}/resources/requests"
            steps.append({"op": "add", "path": path, "value": {}})
    return steps


def _annotate(metadata: Mapping[str, Any], node_name: str) -> Iterator[dict[str, Any]]:
    if not metadata.get("annotations"):
        yield {"op": "add", "path": "/metadata/annotations", "value": {}}
    key = ANNOTATION.replace("~", "~0").replace("/", "~1")
    yield {"op": "add", "path": f"/metadata/annotations/{key}", "value": node_name}


def _suits(pod: Pod, node: Node) -> bool:
    """Whether node selector, required node affinity and taints let the pod onto a node."""
    spec = pod.spec
    tolerations = spec.tolerations or ()
    return spec.chooses(node.name, node.labels) and not any(
        taint.effect in _KEEPING_OFF and not is_tolerated(taint, tolerations)
        for taint in node.taints
    )


def _size(node: Node) -> tuple[int, int, str]:
    has = dict(node.allocatable)
    return has.get(CPU, 0), has.get(MEMORY, 0), node.name
