"""Whole suites in their smallest size: our own, and scheduler_perf's if there is a checkout."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from moorage.bench.cases import Job, read_jobs, select
from moorage.bench.harness import RunOutcome, run
from moorage.cli.bench_targets import engine_targets, select_jobs

ROOT = Path(__file__).parents[2]
OURS = ROOT / "benchmarks"
#: A folder with scheduler_perf's suites: test/integration/scheduler_perf of Kubernetes.
THEIRS = Path(os.environ.get("MOORAGE_SCHEDULER_PERF", ROOT.parent / "scheduler_perf"))
needs_theirs = pytest.mark.skipif(
    not THEIRS.is_dir(),
    reason="needs MOORAGE_SCHEDULER_PERF, the folder of Kubernetes' benchmark scheduler_perf",
)

NEEDED = ("pod groups", "not supported by Moorage yet", "unknown feature gate")


def jobs(folder: Path, labels: str) -> list[Job]:
    return list(select(read_jobs(folder), labels)) if folder.is_dir() else []


@pytest.mark.parametrize("job", jobs(OURS, "integration-test"), ids=lambda job: job.full_name)
def test_our_workloads_place_every_pod(job: Job) -> None:
    result = run(job, engine_targets("", lambda placed: None))
    assert (result.outcome, result.why) == (RunOutcome.MEASURED, "")


@pytest.mark.parametrize("job", jobs(OURS, ""), ids=lambda job: job.full_name)
def test_our_workloads_have_a_size_for_someone(job: Job) -> None:
    assert job.labels & {"integration-test", "performance", "growth"}


@needs_theirs
@pytest.mark.parametrize(
    "job", jobs(THEIRS, "integration-test,-performance"), ids=lambda job: job.full_name
)
def test_their_workloads_place_every_pod_or_tell_what_is_missing(job: Job) -> None:
    result = run(job, engine_targets("", lambda placed: None))
    if result.outcome is RunOutcome.NOT_SUPPORTED:
        assert result.why.endswith(NEEDED)
    else:
        assert (result.outcome, result.why) == (RunOutcome.MEASURED, "")


@needs_theirs
def test_the_documented_comparison_is_of_five_workloads() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    _, _, command = page.partition("### Beside kube-scheduler")
    options = shlex.split(command[command.index("    moorage bench") :].partition("\n\n")[0])
    pattern = options[options.index("--filter") + 1]
    labels = options[options.index("--labels") + 1]

    assert [job.name for job in select_jobs(THEIRS, pattern, labels)] == [
        "SchedulingPodAntiAffinity/5000Nodes_2000Pods",
        "SchedulingNodeAffinity/5000Nodes_10000Pods",
        "SchedulingBasic/5000Nodes_10000Pods",
        "TopologySpreading/5000Nodes_5000Pods",
        "PreferredTopologySpreading/5000Nodes_5000Pods",
    ]
    assert options.count("--scheduler") == 2
