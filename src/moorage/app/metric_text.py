"""Metrics as Prometheus' text: families of counters and histograms, and the resources of pods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric as Family,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from moorage.engine import Engine
from moorage.framework.series import Buckets, Counts, Kind, Labels, Metric, Series, as_go
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec
from moorage.objects.quantity import NANOS_PER_UNIT
from moorage.objects.resources import spec_limits, spec_requests
from moorage.web.engine_reads import Read, at_once, in_slices

#: What `write_family` and `pod_resources` write.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

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

# Pods that are written in one slice: some milliseconds.
_SLICE = 500

#: A pod's resources as text: its name, unit and amount.
_Amounts = tuple[tuple[str, str, str], ...]
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


class _OneFamily(Collector):
    """A registry with a single metric, so that one metric can be written at a time."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> Iterable[Family]:
        return (self._family,)


def write_family(family: Family) -> bytes:
    """Writes one metric with all its values."""
    return generate_latest(_OneFamily(family))


def make_family(series: Series) -> Family:
    """Copies the values that a metric has now."""
    family = _new_family(series.metric)
    _add_values(family, series)
    return family


def add_of_profile(families: dict[str, Family], profile: str, series: Series) -> None:
    """Adds the values of a plugin in one profile to those of the same metric in others."""
    metric = series.metric
    family = families.get(metric.name)
    if family is None:
        labels = ("profile", *metric.labels)
        made = Metric(metric.name, metric.kind, metric.help, labels, metric.buckets)
        family = families[metric.name] = _new_family(made)
    _add_values(family, series, (profile,))


def _new_family(metric: Metric) -> Family:
    kinds = {
        Kind.COUNTER: CounterMetricFamily,
        Kind.GAUGE: GaugeMetricFamily,
        Kind.HISTOGRAM: HistogramMetricFamily,
    }
    return kinds[metric.kind](metric.name, metric.help, labels=metric.labels)


def _add_values(family: Any, series: Series, before: Labels = ()) -> None:
    if isinstance(series, Counts):
        for labels, value in series:
            family.add_metric((*before, *labels), value)
        return
    bounds = [*map(as_go, series.metric.buckets), "+Inf"]
    for labels, buckets in series:
        family.add_metric((*before, *labels), _add_up(bounds, buckets), buckets.sum)


def _add_up(bounds: list[str], buckets: Buckets) -> list[tuple[str, float]]:
    return list(zip(bounds, map(float, np.cumsum(buckets.counts)), strict=True))


async def pod_resources(engine: Engine, read: Read = in_slices) -> AsyncIterator[bytes]:
    """Yields all requests and limits of pods that have not ended, in Prometheus' text format."""
    pods = await read(at_once(lambda: _pods(engine)))
    for name in (LIMIT, REQUEST):
        # By the identity of the template: its pods have the same resources.
        known: dict[int, _Amounts] = {}
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


def _lines(name: str, pods: Iterable[Pod], known: dict[int, _Amounts]) -> Iterator[str]:
    for pod in pods:
        amounts = known.get(id(pod.spec))
        if amounts is None:
            amounts = known[id(pod.spec)] = _resources(name, pod.spec)
        if not amounts:
            continue
        priority = "" if pod.spec.priority is None else pod.spec.priority
        who = (
            f'{name}{{namespace="{_escape(pod.namespace)}",node="{_escape(pod.node_name)}",'
            f'pod="{_escape(pod.name)}",priority="{priority}",resource="'
        )
        scheduler = _escape(pod.spec.scheduler_name)
        for resource, unit, amount in amounts:
            yield f'{who}{resource}",scheduler="{scheduler}",unit="{unit}"}} {amount}\n'


def _resources(name: str, spec: PodSpec) -> _Amounts:
    nanos = spec_limits(spec) if name == LIMIT else spec_requests(spec, {})
    return tuple(_amounts(nanos))


def _amounts(nanos: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
    for resource, amount in sorted(nanos.items()):
        if amount:
            yield _escape(resource), _unit(resource), as_go(amount / NANOS_PER_UNIT)


def _unit(resource: str) -> str:
    if resource == "cpu":
        return "cores"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)
