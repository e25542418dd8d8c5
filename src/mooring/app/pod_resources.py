"""What /metrics/resources tells: what every pod requests and is limited to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from itertools import islice

from mooring.engine import Engine
from mooring.framework.series import as_go
from mooring.objects.pod import Pod, PodSpec
from mooring.objects.quantity import NANOS_PER_UNIT
from mooring.objects.resources import spec_limits, spec_requests
from mooring.web.turns import Read, at_once, in_slices

_ABOUT = (
    "broken down by pod. This shows the resource usage the scheduler and kubelet expect per pod "
    "for resources along with the unit for the resource if any."
)
REQUEST, LIMIT = "kube_pod_resource_request", "kube_pod_resource_limit"
_HELP = {
    LIMIT: f"[STABLE] Resources limit for workloads on the cluster, {_ABOUT}",
    REQUEST: f"[STABLE] Resources requested by workloads on the cluster, {_ABOUT}",
}
_BYTES = ("memory", "storage", "ephemeral-storage")

# Pods that are told about before others get their turn: some milliseconds.
_SLICE = 500

#: A pod's resources as text: its name, unit and amount.
_Told = tuple[tuple[str, str, str], ...]
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


async def pod_resources(engine: Engine, read: Read = in_slices) -> AsyncIterator[bytes]:
    """All requests and limits of pods that have not ended, in Prometheus' text format."""
    pods = await read(at_once(lambda: _pods(engine)))
    for name in (LIMIT, REQUEST):
        # By the identity of the template: its pods have the same resources.
        known: dict[int, _Told] = {}
        yield f"# HELP {name} {_HELP[name]}\n# TYPE {name} gauge\n".encode()
        left = iter(pods)
        while some := list(islice(left, _SLICE)):
            yield "".join(_lines(name, some, known)).encode()
            await asyncio.sleep(0)


def _pods(engine: Engine) -> tuple[Pod, ...]:
    # As the API server knows them: a pod that is only assumed on a node has none there.
    pending = engine.pending_pods
    placed = (pod for uid, pod in engine.cluster.pods.items() if uid not in pending)
    return (*pending.values(), *placed)


def _lines(name: str, pods: Iterable[Pod], known: dict[int, _Told]) -> Iterator[str]:
    for pod in pods:
        told = known.get(id(pod.spec))
        if told is None:
            told = known[id(pod.spec)] = _told(name, pod.spec)
        if not told:
            continue
        priority = "" if pod.spec.priority is None else pod.spec.priority
        who = (
            f'{name}{{namespace="{_escaped(pod.namespace)}",node="{_escaped(pod.node_name)}",'
            f'pod="{_escaped(pod.name)}",priority="{priority}",resource="'
        )
        scheduler = _escaped(pod.spec.scheduler_name)
        for resource, unit, amount in told:
            yield f'{who}{resource}",scheduler="{scheduler}",unit="{unit}"}} {amount}\n'


def _told(name: str, spec: PodSpec) -> _Told:
    nanos = spec_limits(spec) if name == LIMIT else spec_requests(spec, {})
    return tuple(_amounts(nanos))


def _amounts(nanos: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
    for resource, amount in sorted(nanos.items()):
        if amount:
            yield _escaped(resource), _unit(resource), as_go(amount / NANOS_PER_UNIT)


def _unit(resource: str) -> str:
    if resource == "cpu":
        return "cores"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)
