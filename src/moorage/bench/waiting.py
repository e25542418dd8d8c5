"""What events cost while many pods wait: status updates of placed pods, and telemetry.

    python -m moorage.bench.waiting --pods 5000

Pods of each sort fill the queue, alike or each with a template of its own. Then the status of a
placed pod changes, which helps nobody, and an object that tells of a disk says the same again. The
figures are microseconds of processor time per update. `MOST_MICROSECONDS` says what is too much.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import click
import msgspec

from moorage.config import load_mapping
from moorage.engine import Engine
from moorage.engine.actions import BindPod
from moorage.engine.events import Applied
from moorage.engine.registry import registry
from moorage.framework.profile import known_plugins
from moorage.objects.coexist import ANNOTATION, DAEMONSET_AND_STATIC_PODS
from moorage.objects.decode import from_builtins
from moorage.objects.kinds import Object
from moorage.plugins.disk_io.disk_io_resource import KIND, READ

#: What an update that helps no pod may cost, of processor time.
MOST_MICROSECONDS = 50.0

_NODES = 50

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class UpdateCost:
    """What updates cost behind waiting pods of a sort, in microseconds."""

    sort: str
    waiting: int
    status: float
    telemetry: float

    @property
    def is_within(self) -> bool:
        return max(self.status, self.telemetry) <= MOST_MICROSECONDS


# Pods that wait for something, each with a number


def _resources(at: int) -> Manifest:
    return _pod(at, requests={"cpu": f"{1000 + at}"})


def _exclusive(at: int) -> Manifest:
    return _pod(at, annotations={ANNOTATION: DAEMONSET_AND_STATIC_PODS})


def _disk_io(at: int) -> Manifest:
    return _pod(at, annotations={READ: f"{900 + at}Gi"})


def _affinity(at: int) -> Manifest:
    return _pod(at, affinity={"podAffinity": _towards(f"absent-{at}")})


def _anti_affinity(at: int) -> Manifest:
    return _pod(at, affinity={"podAntiAffinity": _towards("resident")})


def _spread(at: int) -> Manifest:
    rule = {
        "maxSkew": 1,
        "topologyKey": f"rack-{at}",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "resident"}},
    }
    return _pod(at, topologySpreadConstraints=[rule])


def _ports(at: int) -> Manifest:
    return _pod(at, ports=[{"containerPort": 80, "hostPort": 80}, {"hostPort": 81 + at % 9999}])


def _volumes(at: int) -> Manifest:
    claim = {"persistentVolumeClaim": {"claimName": f"claim-{at}"}}
    return _pod(at, volumes=[{"name": "data", **claim}])


SORTS: dict[str, Callable[[int], Manifest]] = {
    "resources": _resources,
    "exclusive": _exclusive,
    "disk bandwidth": _disk_io,
    "affinity": _affinity,
    "anti-affinity": _anti_affinity,
    "spread": _spread,
    "ports": _ports,
    "volumes": _volumes,
}


def _towards(app: str) -> Manifest:
    term = {"topologyKey": "kubernetes.io/hostname"}
    selector = {"labelSelector": {"matchLabels": {"app": app}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, **selector}]}


def _pod(
    at: int,
    *,
    annotations: Manifest | None = None,
    requests: Manifest | None = None,
    ports: list[Manifest] | None = None,
    **spec: Any,
) -> Manifest:
    container = {"name": "main", "ports": ports or [], "resources": {"requests": requests or {}}}
    meta = {"name": f"waiting-{at}", "uid": f"waiting-{at}", "annotations": annotations or {}}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


# Measuring


class WaitingBenchmark:
    """An engine with a small full cluster, in front of which pods of one sort wait."""

    def __init__(self, sort: str, count: int, *, alike: bool) -> None:
        plugins = registry()
        enabled = {"multiPoint": {"enabled": [{"name": "DiskIO"}]}}
        raw = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": enabled}],
        }
        self.engine = Engine(load_mapping(raw, known=known_plugins(plugins)), plugins)
        self._now = 1000.0
        for at in range(_NODES):
            self._apply(from_builtins("Node", _node(at)))
            self._apply(from_builtins(KIND, _disk(at)))
            self._apply(from_builtins("Pod", _resident(at)))
        for at in range(count):
            manifest = SORTS[sort](0 if alike else at)
            manifest["metadata"] |= {"name": f"waiting-{at}", "uid": f"waiting-{at}"}
            self._apply(from_builtins("Pod", manifest))
        while any(self.engine.queue.sizes()[place] for place in ("active", "backoff")):
            for action in self.engine.step(self._now, 100):
                assert not isinstance(action, BindPod), f"{sort}: {action.pod.name} has a place"

    def measure(self, update: Callable[[int], Object], times: int) -> float:
        """Microseconds of processor time per update."""
        events = [Applied(update(at)) for at in range(2 * times)]
        for event in events[:times]:
            self.engine.handle(event, self._now)
        # Looking for garbage among all that was made before is no part of an update.
        gc.collect()
        gc.freeze()
        began = time.process_time()
        for event in events[times:]:
            self.engine.handle(event, self._now)
        spent = time.process_time() - began
        gc.unfreeze()
        return spent / times * 1e6

    def _apply(self, item: Object) -> None:
        self.engine.handle(Applied(item), self._now)


def _node(at: int) -> Manifest:
    labels = {"kubernetes.io/hostname": f"node-{at}"}
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "500"}
    return {
        "metadata": {"name": f"node-{at}", "labels": labels},
        "status": {"allocatable": allocatable},
    }


def _resident(at: int, version: int = 0) -> Manifest:
    """Makes a placed pod that is in the way of every sort of waiting pod, with its own status."""
    meta = {"name": f"resident-{at}", "uid": f"resident-{at}", "labels": {"app": "resident"}}
    ports = [{"containerPort": 80, "hostPort": 80}]
    message = {"type": "Ready", "status": "True", "message": str(version)}
    return {
        "metadata": {**meta, "resourceVersion": str(version)},
        "spec": {"nodeName": f"node-{at}", "containers": [{"name": "main", "ports": ports}]},
        "status": {"phase": "Running", "conditions": [message]},
    }


def _disk(at: int, version: int = 0) -> Manifest:
    spec = {"nodeName": f"node-{at}", "capacity": {"read": "800Mi", "write": "500Mi"}}
    meta = {"name": f"node-{at}", "resourceVersion": str(version)}
    return {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": meta, "spec": spec}


def run(count: int, times: int = 500, only: str = "") -> Iterator[UpdateCost]:
    """Measures with so many waiting pods of every sort whose name contains a text."""
    for sort in SORTS:
        for alike in (True, False):
            name = f"{sort}, {'alike' if alike else 'each its own'}"
            if only not in name:
                continue
            benchmark = WaitingBenchmark(sort, count, alike=alike)
            # All at once, so that no template is shared by chance with one that is gone.
            status = benchmark.measure(
                lambda at: from_builtins("Pod", _resident(at % _NODES, at + 1)), times
            )
            telemetry = benchmark.measure(
                lambda at: from_builtins(KIND, _disk(at % _NODES, at + 1)), times
            )
            yield UpdateCost(name, count, status, telemetry)


@click.command()
@click.option("--pods", default="500,5000", show_default=True, help="How many wait, by commas.")
@click.option("--only", default="", help="Measure the sorts whose name contains this text.")
@click.option("--out", type=click.File("w"), help="Write the figures as JSON.")
def main(pods: str, only: str, out: Any) -> None:
    """Measure what updates cost behind waiting pods. Exit code 1 means that it is too much."""
    found: list[UpdateCost] = []
    click.echo("microseconds of processor time per update that helps nobody")
    click.echo(f"{'waiting pods':34} {'count':>7} {'pod status':>11} {'telemetry':>10}")
    for count in map(int, pods.split(",")):
        for cost in run(count, only=only):
            found.append(cost)
            figures = f"{cost.waiting:7,} {cost.status:11.1f} {cost.telemetry:10.1f}"
            click.echo(f"{cost.sort:34} {figures}{'' if cost.is_within else '  TOO MUCH'}")
    if out is not None:
        out.write(msgspec.json.encode(found).decode())
    sys.exit(0 if all(each.is_within for each in found) else 1)


if __name__ == "__main__":
    main()
