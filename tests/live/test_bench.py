"""Benchmarks through a real API server, with every scheduler that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.bench.harness import RunOutcome
from tests.bench.servers import run_through
from tests.bench.workloads import LARGE_POD, MEASURED, NODES, case, job

from .control_plane import control_plane

_FLAGS = (
    "--kubeconfig {kubeconfig} --config {config} --feature-gates={gates} "
    "--leader-elect=false --secure-port=0 --authentication-skip-lookup"
)


@pytest.mark.live
def test_schedulers_are_timed_on_the_same_workload(tmp_path: Path) -> None:
    first = {"opcode": "createPods", "count": 3, "podTemplatePath": "pod.yaml"}
    workload = job(
        tmp_path,
        case(NODES, first, {**MEASURED, "count": 3, "podTemplatePath": "pod.yaml"}),
        pod=LARGE_POD,
    )
    with control_plane() as plane:
        schedulers = ["moorage"]
        if (plane.bin / "kube-scheduler").exists():
            schedulers.append(f"{plane.bin / 'kube-scheduler'} {_FLAGS}")
        # Twice, so that each finds the cluster as the others have left it.
        results = run_through(
            str(plane.kubeconfig), workload, workload, schedulers=tuple(schedulers)
        )
    assert [(result.outcome, result.why) for result in results] == [(RunOutcome.MEASURED, "")] * (
        2 * len(schedulers)
    )
    assert [each.placed for result in results for each in result.measured] == [3] * len(results)
