"""The extenders that a simulation asks, one question at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from moorage.app.extender_calls import ExtenderCalls
from moorage.cluster import Cluster
from moorage.engine import Engine
from moorage.engine.actions import AskExtender
from moorage.engine.events import ExtenderAnswered
from moorage.engine.extenders.questions import encode_manifest
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.quantity import Quantity, format_quantity
from moorage.objects.resources import format_amount
from moorage.simulate.simulation import AnswerOf
from moorage.world import World


@contextmanager
def connect_extenders(engine: Engine) -> Iterator[AnswerOf | None]:
    """Yields a function that asks the engine's extenders; None if it has no extenders.

    Raises ExtenderUnusable if certificates cannot be read.
    """
    extenders = engine.configuration.extenders
    if not extenders:
        yield None
        return
    with asyncio.Runner() as runner:
        calls = runner.run(_open(ExtenderCalls(extenders, 1)))

        def answer(ask: AskExtender, world: World) -> ExtenderAnswered:
            calls.source = WrittenManifests(engine.cluster, world.pods)
            return runner.run(calls.answer(ask))

        try:
            yield answer
        finally:
            runner.run(calls.__aexit__(None, None, None))


async def _open(calls: ExtenderCalls) -> ExtenderCalls:
    return await calls.__aenter__()


class WrittenManifests:
    """Pods and nodes as JSON for extenders, written from the engine's own objects."""

    def __init__(self, cluster: Cluster, waiting: dict[str, Pod]) -> None:
        """`waiting` holds all pods by uid, also those without a node."""
        self._cluster = cluster
        self._waiting = waiting

    def pod(self, uid: str) -> bytes:
        return encode_manifest("Pod", _write_pod(self._waiting[uid]))

    def node(self, name: str) -> bytes:
        row = self._cluster.nodes.row(name)
        if row is None:
            raise KeyError(name)
        return encode_manifest("Node", _write_node(self._cluster.nodes.node(row)))


def _write_pod(pod: Pod) -> dict[str, Any]:
    return {
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "labels": dict(pod.labels),
            "annotations": dict(pod.annotations),
        },
        "spec": _write(pod.spec),
        "status": _write(pod.status),
    }


def _write_node(node: Node) -> dict[str, Any]:
    amounts = {name: format_amount(name, amount) for name, amount in node.allocatable}
    return {
        "metadata": {
            "name": node.name,
            "uid": node.uid,
            "labels": dict(node.labels),
            "annotations": dict(node.annotations),
        },
        "spec": {
            "taints": [_write(each) for each in node.taints],
            **({"unschedulable": True} if node.unschedulable else {}),
        },
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [_write(each) for each in node.conditions],
            "images": [_write(each) for each in node.images],
        },
    }


def _write(value: msgspec.Struct) -> Any:
    return msgspec.to_builtins(value, enc_hook=_write_special)


def _write_special(value: Any) -> Any:
    return format_quantity(value) if isinstance(value, Quantity) else str(value)
