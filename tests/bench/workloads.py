"""Test cases written into a folder, and runs of them on an engine whose clock only ticks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from moorage.bench.cases import Job, read_jobs
from moorage.bench.engine_target import EngineTarget
from moorage.bench.harness import Result, run
from moorage.bench.measurement import Stopwatch
from moorage.config import FeatureGates, default
from moorage.engine import Engine
from moorage.framework.profile import known_plugins
from moorage.plugins import REGISTRY

NODES = {"opcode": "createNodes", "count": 3}
MEASURED = {"opcode": "createPods", "count": 4, "collectMetrics": True}

#: Two of these fit on a node.
LARGE_POD = """
apiVersion: v1
kind: Pod
metadata:
  generateName: large-
  labels: {index: "{{.Index}}"}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: pause
      image: registry.k8s.io/pause:3.10.1
      resources: {requests: {cpu: "2"}}
"""


def case(*operations: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A test case with one workload."""
    return {
        "name": "Case",
        "workloadTemplate": list(operations),
        "workloads": [{"name": "Only", "labels": ["performance"]}],
        **more,
    }


def job(folder: Path, written: dict[str, Any], **templates: str) -> Job:
    """The first workload of a test case, in a folder with these templates."""
    for name, text in templates.items():
        (folder / f"{name}.yaml").write_text(text)
    file = folder / "performance-config.yaml"
    file.write_text(yaml.safe_dump([written]))
    return next(iter(read_jobs(file)))


def ticking(seconds: float) -> Callable[[], float]:
    """A clock that goes on by so much whenever it is looked at."""
    ticks = count()
    return lambda: next(ticks) * seconds


class Runs:
    """Runs workloads, and keeps the target of the last one to look at."""

    target: EngineTarget

    def __init__(self, tick: float = 1e-6) -> None:
        self._tick = tick

    def __call__(self, job: Job) -> Result:
        return run(job, self.make)

    def make(self, job: Job) -> EngineTarget:
        gates = FeatureGates.parse(job.gates)
        engine = Engine(default(known_plugins(REGISTRY), gates), REGISTRY)
        watch = Stopwatch(ticking(self._tick), ticking(self._tick))
        self.target = EngineTarget(engine, watch)
        return self.target
