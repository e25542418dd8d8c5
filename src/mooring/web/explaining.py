"""What `mooring explain` asks a scheduler at work: the explanation, and what the queue knows."""

from __future__ import annotations

from collections.abc import Generator
from itertools import chain, islice

import msgspec

from mooring.engine import Engine
from mooring.engine.explain import explain, queue_view
from mooring.objects.pod import Pod

from .waiting import SLICE


def find_pod(engine: Engine, namespace: str, name: str) -> Generator[None, None, Pod | None]:
    """The pod of that name, waiting or placed, looked for in slices."""
    waiting = [each.pod for each in chain(engine.queue, engine.queue.in_flight)]
    pods = iter([*waiting, *engine.cluster.pods.values()])
    while some := list(islice(pods, SLICE)):
        for pod in some:
            if pod.name == name and pod.namespace == namespace:
                return pod
        yield
    return None


def explanation(engine: Engine, pod: Pod, node: str, now: float) -> bytes:
    """The explanation as JSON; UnknownNode if there is no such node."""
    told = explain(engine, pod, node)
    return msgspec.json.encode(msgspec.structs.replace(told, queue=queue_view(engine, pod, now)))
