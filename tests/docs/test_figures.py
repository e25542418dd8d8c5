"""The tables of figures are made from results, and leave nothing out."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.bench.cases import Job, read_jobs, select
from moorage.bench.results import (
    DECISIONS,
    PROCESS_PROCESSOR,
    PROCESSOR,
    THROUGHPUT,
    DataItem,
    DataItems,
    write_results,
)
from tools import doc_figures as figures
from tools.doc_figures import TITLES, comparison_table, speed_table, title

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RUN = {
    "machine": "two cores",
    "python": "3.11",
    "commit": "abc",
    "date": "2026-01-02T03:04:05",
    "command": "moorage bench",
    "target": "engine",
}


def item(workload: str, metric: str, data: dict[str, float], **labels: str) -> DataItem:
    name = f"BenchmarkPerfScheduling/{workload}/namespace-2"
    return DataItem(data=data, labels={"Name": name, "Metric": metric, **labels})


@pytest.mark.parametrize(
    "job", list(select(read_jobs(BENCHMARKS), "short")), ids=lambda job: job.full_name
)
def test_short_workloads_have_a_title_and_a_threshold(job: Job) -> None:
    assert title(job.name) is not None, f"add {job.name} to the table"
    assert job.workload.threshold_for(job.case.topic) > 0
    # The engine's processor time: it hardly depends on what else the machine does.
    assert (job.selector.name, job.selector.expect_lower) == (PROCESSOR, True)


def test_every_title_is_that_of_a_workload() -> None:
    told = [title(job.name) for job in select(read_jobs(BENCHMARKS), "short")]
    assert sorted(filter(None, told)) == sorted(TITLES.values())


def test_the_slower_of_placing_and_rejecting_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload, attempts = "PlainPods/7Nodes_1Pods", "scheduler_scheduling_attempt_duration_seconds"
    items = [
        item(workload, THROUGHPUT, {"Average": 1234.5}),
        item(workload, DECISIONS, {"Average": 2345.6}),
        item(workload, PROCESSOR, {"Average": 56.7}),
        item(workload, attempts, {"Perc99": 0.5}, result="scheduled"),
        item(workload, attempts, {"Perc99": 1.5}, result="unschedulable"),
    ]
    write_results(tmp_path / "results.json", DataItems(data_items=items, run=RUN))
    monkeypatch.setattr(figures, "RESULTS", tmp_path)

    assert speed_table().splitlines()[2:] == [
        "| plain pods | 7 | 1,234 | 2,346 | 1.50 ms | 57 µs |",
        "",
        "two cores, Python 3.11, commit abc, 2026-01-02:",
        "",
        "    moorage bench",
    ]


def test_schedulers_are_side_by_side(tmp_path: Path) -> None:
    items = [
        each
        for workload, by, rate, micros in (
            ("A/5000Nodes", "moorage", 900.4, 760),
            ("A/5000Nodes", "kube-scheduler", 150, 12_345),
            ("B/5000Nodes", "moorage", 800, 810),
        )
        for each in (
            item(workload, THROUGHPUT, {"Average": rate}, scheduler=by),
            item(workload, PROCESS_PROCESSOR, {"Average": micros}, scheduler=by),
        )
    ]
    write_results(tmp_path / "results.json", DataItems(data_items=items, run=RUN))

    assert comparison_table(tmp_path).splitlines()[3:7] == [
        "| pods/s (CPU per pod) | moorage | kube-scheduler |",
        "| --- | ---: | ---: |",
        "| A/5000Nodes | 900 (0.8 ms) | 150 (12.3 ms) |",
        "| B/5000Nodes | 800 (0.8 ms) | - |",
    ]
    assert comparison_table(tmp_path / "nobody measured") == ""
