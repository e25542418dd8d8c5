"""The details of one node or one pod, and a search for them by a part of their name."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import suppress
from itertools import chain, islice

import msgspec
from msgspec.structs import replace

from moorage.engine import Engine
from moorage.engine.explain import (
    Explanation,
    Steps,
    explain_gang,
    explain_in_steps,
    view_queue,
)
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.workload import owner_text
from moorage.queue import Entity

from .device_details import DeviceOnNode, describe_devices
from .messages import Detail
from .queue_picture import SLICE, describe_wait

# Pods of a node that are shown; kubelets run a few hundred at most.
_MOST_PODS = 500
# What a search finds at most, of nodes and of pods.
_MOST_FOUND = 10


class ResourceUse(Detail, frozen=True):
    """The use of one resource in native units: thousandths of a core, bytes, pieces."""

    name: str
    requested: int
    allocatable: int


class PodOnNode(Detail, frozen=True):
    namespace: str
    name: str
    priority: int
    requests: dict[str, int]


class NodeDetail(Detail, frozen=True):
    """A node, how much of it is used, and by which pods."""

    name: str
    unschedulable: bool
    labels: dict[str, str]
    taints: list[str]
    resources: list[ResourceUse]
    pods: list[PodOnNode]
    pod_count: int
    devices: list[DeviceOnNode]
    #: What plugins count of it beyond its allocatable resources: figures by type.
    extended: dict[str, dict[str, int]]


class GangDetail(Detail, frozen=True):
    """The group that a pod is placed with."""

    name: str
    min_count: int
    is_gang: bool
    placed: int
    waiting: int
    #: Why the group was not placed when it was tried last.
    message: str = ""


class PodDetail(Detail, frozen=True):
    """The state of a pod, with the fields of a full explanation as far as they are known."""

    pod: str
    state: str
    #: The answer in one sentence.
    headline: str = ""
    #: The same for the pod without the gang that it waits with.
    alone: str = ""
    owner: str = ""
    priority: int = 0
    requests: dict[str, int] = msgspec.field(default_factory=dict)
    gang: GangDetail | None = None
    message: str = ""
    running_on: str = ""
    rejected_by: list[str] = msgspec.field(default_factory=list)
    attempts: int = 0
    #: Who rejects which nodes, and what would help.
    explanation: Explanation | None = None


class SearchResult(Detail, frozen=True):
    """The names that contain a text."""

    nodes: list[str]
    pods: list[str]


def describe_node(engine: Engine, name: str) -> bytes | None:
    """Returns a node as JSON; None if there is no such node."""
    nodes = engine.cluster.nodes
    row = nodes.row(name)
    if row is None:
        return None
    node, pods = nodes.node(row), nodes.pods(row)
    detail = NodeDetail(
        name=name,
        unschedulable=node.unschedulable,
        labels=dict(node.labels),
        taints=[f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints],
        resources=[
            ResourceUse(each, int(nodes.requested[at, row]), int(nodes.allocatable[at, row]))
            for each, at in nodes.resources.items()
            if nodes.allocatable[at, row] or nodes.requested[at, row]
        ],
        pods=[_pod_on_node(pod) for pod in islice(pods.values(), _MOST_PODS)],
        pod_count=len(pods),
        devices=describe_devices(nodes.devices, node, pods.values()),
        extended=describe_extended(engine, row),
    )
    return msgspec.json.encode(detail)


def describe_extended(engine: Engine, row: int) -> dict[str, dict[str, int]]:
    """Returns the figures of a node's extended resources, without those of plugins that fail."""
    extended = engine.cluster.extended
    found: dict[str, dict[str, int]] = {}
    for kind in extended:
        resource = extended.resource(kind, row)
        if resource is not None:
            with suppress(Exception):
                found[kind] = dict(resource.figures())
    return found


def describe_pod(engine: Engine, namespace: str, name: str, now: float) -> Steps[bytes | None]:
    """Returns where a pod is and why, as JSON; None if it is not known."""
    for queued in chain(engine.queue, engine.queue.in_flight):
        if queued.pod.name == name and queued.pod.namespace == namespace:
            detail = yield from _complete(engine, _describe_queued(queued), queued.pod, now)
            return msgspec.json.encode(detail)
    for pod in engine.cluster.pods.values():
        if pod.name == name and pod.namespace == namespace:
            detail = PodDetail(pod.key, "running", running_on=pod.node_name)
            detail = yield from _complete(engine, detail, pod, now)
            return msgspec.json.encode(detail)
    return None


def tag_answers(engine: Engine) -> str:
    """Returns a tag that changes whenever answers about pods may have changed."""
    queue = engine.queue
    decisions = sum(each.statistics.decisions for each in engine.classes.values())
    sizes = (*queue.sizes().values(), len(queue.in_flight), len(engine.cluster.pods))
    return "-".join(map(str, (engine.cluster.changes.generation, decisions, *sizes)))


def _complete(engine: Engine, detail: PodDetail, pod: Pod, now: float) -> Steps[PodDetail]:
    """Adds the fields that every pod has."""
    why = yield from _try_to_explain(engine, pod, now)
    headline = alone = "" if why is None else why.headline
    gang = _describe_gang(engine, pod)
    if gang is not None and gang.is_gang and not detail.running_on:
        count = f"{gang.placed} of {gang.min_count} placed, {gang.waiting} waiting"
        headline = f"pod {pod.key} waits with its gang {gang.name}: {count}"
    return replace(
        detail,
        headline=headline,
        alone="" if alone == headline else alone,
        explanation=why,
        owner=owner_text(pod),
        priority=pod.priority,
        requests=dict(pod.held.requests),
        gang=gang,
    )


def _try_to_explain(engine: Engine, pod: Pod, now: float) -> Steps[Explanation | None]:
    try:
        explanation = yield from explain_in_steps(engine.decider, pod)
        return replace(explanation, queue=view_queue(engine, pod, now))
    except Exception:  # noqa: BLE001 - a plugin that breaks has events of its own
        return None


def _describe_gang(engine: Engine, pod: Pod) -> GangDetail | None:
    groups = engine.cluster.groups
    group = groups.of(pod)
    if group is None:
        return None
    key = group.group_key
    placed = len(groups.placed(key))
    waiting = groups.count(key) - placed
    message = describe_refusal(group)
    return GangDetail(group.key, group.min_count, group.is_gang, placed, waiting, message)


def describe_refusal(group: PodGroup) -> str:
    """Returns why a group is not placed, as its conditions say; empty if they do not."""
    said = (each for each in group.conditions if each.status == "False" and each.message)
    return next((each.message or "" for each in said), "")


def find(engine: Engine, text: str) -> Generator[None, None, bytes]:
    """Finds nodes and pods whose names contain a text, in slices; returns JSON."""
    nodes = engine.cluster.nodes
    names = nodes.names(nodes.rows.tolist())
    found_nodes = list(islice((name for name in names if text in name), _MOST_FOUND))
    waiting = [queued.pod for queued in engine.queue]
    pods = iter([*waiting, *engine.cluster.pods.values()])
    found: list[str] = []
    while len(found) < _MOST_FOUND and (some := list(islice(pods, SLICE))):
        found += _keys_with(text, some)
        yield
    return msgspec.json.encode(SearchResult(found_nodes, found[:_MOST_FOUND]))


def _keys_with(text: str, pods: Iterable[Pod]) -> list[str]:
    return [key for key in (pod.key for pod in pods) if text in key]


def _describe_queued(queued: Entity) -> PodDetail:
    return PodDetail(
        queued.pod.key,
        queued.place,
        message=describe_wait(queued),
        rejected_by=sorted(queued.waking_plugins),
        attempts=queued.attempts,
    )


def _pod_on_node(pod: Pod) -> PodOnNode:
    return PodOnNode(pod.namespace, pod.name, pod.priority, dict(pod.held.requests))


def find_pod(engine: Engine, namespace: str, name: str) -> Generator[None, None, Pod | None]:
    """Finds the pod of that name, waiting or placed, in slices."""
    waiting = [each.pod for each in chain(engine.queue, engine.queue.in_flight)]
    pods = iter([*waiting, *engine.cluster.pods.values()])
    while some := list(islice(pods, SLICE)):
        for pod in some:
            if pod.name == name and pod.namespace == namespace:
                return pod
        yield
    return None


def explain_pod(engine: Engine, pod: Pod, node: str, now: float) -> Steps[bytes]:
    """Returns the explanation as JSON; raises NoSuchNode if there is no such node."""
    explanation = yield from explain_in_steps(engine.decider, pod, node)
    return msgspec.json.encode(replace(explanation, queue=view_queue(engine, pod, now)))


def explain_group(engine: Engine, namespace: str, name: str) -> bytes | None:
    """Returns why a group waits, or where it goes, as JSON; None if there is no such group."""
    group = engine.cluster.groups.find(f"{namespace}/{name}")
    return None if group is None else msgspec.json.encode(explain_gang(engine, group))
