"""Workloads run through an API server by the command line's own means."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.bench.cases import Job
from moorage.bench.harness import Result, run
from moorage.cli.bench import Batching
from moorage.cli.bench_targets import open_comparison


def run_through(
    target: str, *jobs: Job, schedulers: tuple[str, ...] = (), batching: Batching = Batching.DEFAULT
) -> list[Result]:
    """What came of each workload with each scheduler, in the order in which they were run."""
    with open_comparison(target, schedulers, batching, "", lambda placed: None) as comparison:
        return [run(job, by.make_target, by.name) for job in jobs for by in comparison.schedulers]


def patience(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Pods that stay pending are waited for in real time here."""
    monkeypatch.setattr("moorage.bench.executor._PATIENCE_SECONDS", seconds)


def script(folder: Path, text: str) -> str:
    """A scheduler written in shell."""
    path = folder / "fake-scheduler"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)
