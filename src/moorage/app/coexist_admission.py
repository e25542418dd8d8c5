"""What the webhooks of the coexist policy decide: which bindings pass, and what pods request.

A guard knows which pods are on which node, and which bindings it has admitted but not seen yet, so
that only one of two simultaneous bindings passes. It is best effort: it knows a pod when the watch
delivers it, and guards of other replicas do not know its reservations.

A reservation closes a node to others, so it is made only for a pod that exists and waits. A pod has
at most one reservation; the next one replaces it.

The requests of exclusive pods are raised to the size of a node, because a cluster autoscaler counts
requests and does not know the coexist policy. If an exclusive pod requests what the smallest
suitable node has left beside its daemons, the autoscaler gives it a node of its own, too.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import msgspec

from moorage.objects.coexist import admit, is_exclusive, is_trusted
from moorage.objects.daemons import is_ordinary
from moorage.objects.kinds import Object
from moorage.objects.node import Node
from moorage.objects.placement_rules import is_tolerated
from moorage.objects.pod import Pod
from moorage.objects.pod_refusal import PodRefusal
from moorage.objects.resources import CPU, MEMORY, format_amount
from moorage.objects.workload import Namespace

from . import logs

_log = logs.make_log(__name__)

# A binding that was let in and is not seen by then was not made.
_RESERVED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Reservation:
    pod: Pod
    node: str
    until: float


class CoexistGuard:
    """The pods of each node, as a watch delivers them."""

    def __init__(self, *, enabled: bool = True, clock: Callable[[], float] = monotonic) -> None:
        self._enabled = enabled
        self._clock = clock
        self._pods: dict[str, Pod] = {}
        self._placed: dict[str, dict[str, Pod]] = {}
        self._reserved: dict[str, _Reservation] = {}
        self._trusted: set[str] = set()

    def find(self, namespace: str, name: str) -> Pod | None:
        """Returns the pod of that name, as last seen."""
        return self._pods.get(f"{namespace}/{name}")

    def pods_on(self, node: str) -> Iterable[Pod]:
        """The pods on a node, as last seen."""
        return self._placed.get(node, {}).values()

    def review(self, pod: Pod, node: str) -> PodRefusal | None:
        """Why a pod may not go to a node; None if it may."""
        return admit(pod, self._present(node), enabled=self._enabled, trusts=self._trusts)

    def reserve(self, pod: Pod, node: str) -> None:
        """Counts an existing pod without a node on this node, until the watch shows it there."""
        if self._enabled:
            until = self._clock() + _RESERVED_SECONDS
            self._reserved[pod.uid] = _Reservation(pod, node, until)

    def _trusts(self, namespace: str) -> bool:
        return namespace in self._trusted

    def _present(self, node: str) -> Iterator[Pod]:
        yield from self._placed.get(node, {}).values()
        now = self._clock()
        for uid, reserved in list(self._reserved.items()):
            if reserved.until <= now:
                del self._reserved[uid]
            elif reserved.node == node:
                yield reserved.pod

    # What the watch delivers

    def applied(self, item: Object, raw: bytes | msgspec.Raw) -> None:
        if isinstance(item, Namespace):
            (self._trusted.add if is_trusted(item.labels) else self._trusted.discard)(item.name)
        if not isinstance(item, Pod):
            return
        self._forget(self._pods.get(item.key))
        self._pods[item.key] = item
        if item.node_name or item.is_finished:
            self._reserved.pop(item.uid, None)
        if item.node_name and not item.is_finished:
            self._placed.setdefault(item.node_name, {})[item.uid] = item

    def removed(self, item: Object) -> None:
        if isinstance(item, Namespace):
            self._trusted.discard(item.name)
        if isinstance(item, Pod):
            self._forget(self._pods.pop(item.key, None))
            self._reserved.pop(item.uid, None)

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        _log.error("Left out an object that cannot be read", kind=kind, object=key, problem=problem)

    def _forget(self, pod: Pod | None) -> None:
        """Takes a pod off its node; an earlier pod of the same name may have had another uid."""
        if pod is None:
            return
        there = self._placed.get(pod.node_name, {})
        there.pop(pod.uid, None)
        if not there:
            self._placed.pop(pod.node_name, None)


#: On a pod whose requests were raised: the node that the size was taken from.
ANNOTATION = "scheduling.moorage.dev/raised-requests"

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
