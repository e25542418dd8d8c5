"""Which workloads the options of `mooring bench` mean."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from mooring.bench.cases import Job, read, wanted
from mooring.bench.operations import CreatePods
from mooring.bench.parameters import resolved
from mooring.bench.problems import WorkloadError


def chosen(path: Path, pattern: str, labels: str) -> list[Job]:
    """The workloads of a file or folder with these labels whose name matches."""
    matching = regex("--filter", pattern)
    jobs = [job for job in wanted(read(path), labels) if matching.search(job.full_name)]
    if not jobs:
        raise WorkloadError(path, f"no workload has the labels {labels!r} and matches {pattern!r}")
    return jobs


def pod_count(job: Job) -> int:
    """How many pods a workload makes, as far as that is known beforehand."""
    try:
        operations = resolved(job)
    except WorkloadError:
        # Running it will tell what is wrong.
        return 0
    return sum(each.count for each in operations if isinstance(each, CreatePods))


def regex(option: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def numbers(option: str, text: str) -> list[int]:
    """The positive numbers of a comma-separated list."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise typer.BadParameter("expected positive numbers such as 1000,5000", param_hint=option)
    return found
