"""What is measured, and what is made of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from moorage.bench import results
from moorage.bench.cases import WorkloadError
from moorage.bench.comparison import compare, geometric_mean, rank_probability
from moorage.bench.harness import RunOutcome
from moorage.bench.measurement import Stopwatch, summary, throughput_samples
from moorage.bench.results import DataItem, DataItems
from tests.bench.workloads import MEASURED, NODES, Runs, case, job


@pytest.mark.parametrize(
    ("placements", "ended", "samples"),
    [
        pytest.param([], 5.0, [], id="nothing placed"),
        pytest.param([0.1, 0.2], 0.9, [], id="shorter than a second"),
        pytest.param([0.5, 1.5, 1.6], 2.9, [2.0], id="the first look only begins the count"),
        pytest.param([3.5, 4.1, 4.2, 4.3], 5.0, [3.0], id="nothing counts before a placement"),
        pytest.param([0.5, 3.5, 3.6], 4.0, [2 / 3] * 3, id="an idle second gets the next rate"),
        pytest.param([0.5, 1.5, 2.5, 2.6], 2.9, [1.0], id="the last part of a second is left out"),
    ],
)
def test_samples(placements: list[float], ended: float, samples: list[float]) -> None:
    assert throughput_samples(placements, 0.0, ended) == pytest.approx(samples)


@given(st.lists(st.floats(0.0, 30.0), min_size=1).map(sorted))
def test_samples_add_up_to_the_pods_between_the_first_and_the_last_look(
    placements: list[float],
) -> None:
    looks = [sum(each <= second for each in placements) for second in range(1, 32)]
    seen = [count for count in looks if count]
    assert sum(throughput_samples(placements, 0.0, 31.0)) == pytest.approx(seen[-1] - seen[0])


def test_percentiles_are_values_that_were_measured() -> None:
    found = summary(list(range(1, 201)))
    assert found == {"Average": 100.5, "Perc50": 100, "Perc90": 180, "Perc95": 190, "Perc99": 198}
    assert set(summary([7.0]).values()) == {7.0}


def test_a_stopwatch_stands_still_in_pauses() -> None:
    times = iter([0.0, 10.0, 13.0, 20.0])
    watch = Stopwatch(lambda: next(times), lambda: 0.0)
    with watch.pause(), watch.pause():
        pass
    assert watch.seconds == 20.0 - (13.0 - 10.0)


def measured(tmp_path: Path, **more: Any) -> list[DataItem]:
    return list(Runs()(job(tmp_path, case(NODES, MEASURED, **more))).items)


def test_data_items_are_scheduler_perfs(tmp_path: Path) -> None:
    items = measured(tmp_path)
    path = tmp_path / "out" / "results.json"
    results.write_results(path, DataItems(data_items=items, run={"commit": "abc"}))

    name = "BenchmarkPerfScheduling/Case/Only/namespace-1"
    throughput = items[0]
    assert throughput.labels == {"Name": name, "Metric": "SchedulingThroughput"}
    assert throughput.unit == "pods/s"
    assert set(throughput.data) == {"Average", "Perc50", "Perc90", "Perc95", "Perc99"}
    assert {each.labels["Metric"] for each in items} == {
        "SchedulingThroughput",
        "scheduler_scheduling_attempt_duration_seconds",
        "DecisionThroughput",
        "processor_time_per_pod",
        "resident_memory_usage",
        "SchedulingDuration",
    }
    read = results.read_results(path)
    assert (read.version, read.data_items) == ("v1", items)
    assert results.read_results(path.parent).data_items == items


def test_every_item_has_every_label_as_perf_dash_expects(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    items = measured(tmp_path)
    results.write_results(path, DataItems(data_items=items))

    written = json.loads(path.read_text())["dataItems"]
    assert {tuple(sorted(each["labels"])) for each in written} == {("Metric", "Name", "result")}
    assert written[0]["labels"]["result"] == "not applicable"
    assert results.read_results(path).data_items == items


#: As kube-scheduler's runs write it, cut down to one item of each form. A run too short for a
#: sample has no figures at all, not even the name of the metric.
RECORDED = """{"version":"v1","dataItems":[
{"data":{"Average":268.9,"AverageThreshold":270,"Perc50":296,"Perc90":312,"Perc95":320,"Perc99":320},
"unit":"pods/s","labels":{"Metric":"SchedulingThroughput",
"Name":"BenchmarkPerfScheduling/SchedulingBasic/5000Nodes_10000Pods/namespace-2",
"event":"not applicable","extension_point":"not applicable","plugin":"not applicable",
"result":"not applicable"}},
{"data":{"Average":1.9,"Perc50":1.6,"Perc90":3.1,"Perc95":3.7,"Perc99":4.6},"unit":"ms",
"labels":{"Metric":"scheduler_scheduling_attempt_duration_seconds",
"Name":"BenchmarkPerfScheduling/SchedulingBasic/5000Nodes_10000Pods/namespace-2",
"event":"not applicable","extension_point":"not applicable","plugin":"not applicable",
"result":"scheduled"}},
{"data":{"GrowthRate":12.5},"unit":"MB/min","labels":{"Metric":"memory_growth_rate",
"Name":"BenchmarkPerfScheduling/SchedulingBasic/5000Nodes_10000Pods/namespace-2",
"event":"not applicable","extension_point":"not applicable","plugin":"not applicable",
"result":"not applicable"}},
{"data":null,"unit":"","labels":{"Metric":"not applicable",
"Name":"BenchmarkPerfScheduling/SchedulingBasic/500Nodes/namespace-2",
"event":"not applicable","extension_point":"not applicable","plugin":"not applicable",
"result":"not applicable"}}]}"""


def test_recorded_results_of_kube_scheduler_are_compared_with_ours(tmp_path: Path) -> None:
    recorded = tmp_path / "BenchmarkPerfScheduling_benchmark_2026-05-01T10:00:00Z.json"
    recorded.write_text(RECORDED)
    name = "BenchmarkPerfScheduling/SchedulingBasic/5000Nodes_10000Pods/namespace-2"
    attempts = "scheduler_scheduling_attempt_duration_seconds"
    ours = [
        DataItem(
            data={"Average": 537.8},
            unit="pods/s",
            labels={"Name": name, "Metric": "SchedulingThroughput", "scheduler": "moorage"},
        ),
        DataItem(
            data={"Perc99": 0.46},
            unit="ms",
            labels={"Name": name, "Metric": attempts, "result": "scheduled"},
        ),
    ]
    ours[1].labels["scheduler"] = "moorage"

    found = list(compare(results.read_results(tmp_path).data_items, ours))
    assert [(each.metric, each.unit) for each in found] == [
        ("SchedulingThroughput", "pods/s"),
        (f"{attempts} result=scheduled", "ms"),
    ]
    assert [each.change for each in found] == pytest.approx([1.0, -0.9])
    assert {each.name for each in found} == {name.removeprefix("BenchmarkPerfScheduling/")}


def test_schedulers_of_one_set_are_told_apart() -> None:
    both = throughput(1) + throughput(2)
    for item, by in zip(both, ("one", "other"), strict=True):
        item.labels["scheduler"] = by
    found = list(compare(both, both))
    assert [(each.name, each.before) for each in found] == [("A (one)", (1,)), ("A (other)", (2,))]
    # A set that is about one scheduler is compared with each.
    found = list(compare(throughput(4), both))
    assert [(each.name, each.change) for each in found] == [("A (one)", -0.75), ("A (other)", -0.5)]


def test_results_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    with pytest.raises(WorkloadError, match=r"results\.json: no such file"):
        results.read_results(path)
    path.write_text('{"dataItems": 3}')
    with pytest.raises(WorkloadError, match=r"results\.json: Expected `array \| null`, got `int`"):
        results.read_results(path)
    path.unlink()
    with pytest.raises(WorkloadError, match="no JSON files in this folder"):
        results.read_results(tmp_path)


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ({"threshold": 1}, RunOutcome.MEASURED),
        ({"threshold": 1e12}, RunOutcome.BELOW),
        ({"threshold": {"other": 1e12}}, RunOutcome.MEASURED),
        (
            {"threshold": 1, "thresholdMetricSelector": {"expectLower": True}},
            RunOutcome.BELOW,
        ),
        (
            {
                "threshold": 1e-12,
                "thresholdMetricSelector": {
                    "name": "scheduler_scheduling_attempt_duration_seconds",
                    "labels": {"result": "scheduled"},
                    "dataBucket": "Perc99",
                    "expectLower": True,
                },
            },
            RunOutcome.BELOW,
        ),
        ({"threshold": 1, "thresholdMetricSelector": {"dataBucket": "Max"}}, RunOutcome.BELOW),
    ],
)
def test_thresholds(tmp_path: Path, more: dict[str, Any], outcome: RunOutcome) -> None:
    written = case(NODES, MEASURED, workloads=[{"name": "Only", **more}])
    result = Runs()(job(tmp_path, written))
    assert result.outcome is outcome
    assert bool(result.why) is (outcome is RunOutcome.BELOW)


def test_a_threshold_of_the_engines_processor_time_is_for_the_engine(tmp_path: Path) -> None:
    selector = {"name": "processor_time_per_pod", "expectLower": True}
    workload = {"name": "Only", "threshold": 1e-12, "thresholdMetricSelector": selector}
    slow = job(tmp_path, case(NODES, MEASURED, workloads=[workload]))
    result = Runs()(slow)
    assert result.outcome is RunOutcome.BELOW
    # Whoever decides elsewhere is a process with much else to do.
    process = replace(result.measured[0], latencies={})
    items = list(results.data_items(slow, process))
    assert "process_processor_time_per_pod" in {each.labels["Metric"] for each in items}
    assert results.describe_miss(slow, items) is None


def test_a_threshold_is_told_with_the_figure_it_is_for(tmp_path: Path) -> None:
    items = measured(tmp_path, workloads=[{"name": "Only", "threshold": 5}])
    assert [each.data.get("AverageThreshold") for each in items[:2]] == [5.0, None]


def test_a_threshold_of_something_unmeasured_is_a_mistake(tmp_path: Path) -> None:
    selector = {"name": "queue_length"}
    written = case(
        NODES,
        MEASURED,
        workloads=[{"name": "Only", "threshold": 1, "thresholdMetricSelector": selector}],
    )
    with pytest.raises(
        WorkloadError, match="thresholdMetricSelector: queue_length: is not measured"
    ):
        Runs()(job(tmp_path, written))


# Comparing


def throughput(*rates: float, name: str = "A") -> list[DataItem]:
    labels = {"Name": f"BenchmarkPerfScheduling/{name}", "Metric": "SchedulingThroughput"}
    return [DataItem(data={"Average": rate}, unit="pods/s", labels=labels) for rate in rates]


def test_medians_are_compared() -> None:
    (found,) = compare(throughput(90, 100, 500), throughput(150, 200, 210))
    assert (found.name, found.change) == ("A", 1.0)
    assert found.probability is None
    assert not found.is_significant


def test_many_runs_tell_a_change_from_noise() -> None:
    (apart,) = compare(throughput(1, 2, 3, 4, 5, 6), throughput(7, 8, 9, 10, 11, 12))
    (mixed,) = compare(throughput(1, 3, 5, 7, 9, 11), throughput(2, 4, 6, 8, 10, 12))
    assert (apart.is_significant, mixed.is_significant) == (True, False)


def test_what_only_one_side_has_is_kept() -> None:
    found = list(compare(throughput(1), throughput(2, name="B")))
    assert [(each.name, each.change) for each in found] == [("A", None), ("B", None)]


@given(st.lists(st.floats(1, 9), max_size=9), st.lists(st.floats(1, 9), max_size=9))
def test_the_probability_does_not_depend_on_the_order(one: list[float], other: list[float]) -> None:
    chance = rank_probability(one, other)
    assert chance == rank_probability(other, one)
    assert chance is None or 0.0 <= chance <= 1.0


def test_the_probability_is_that_of_the_books() -> None:
    """R: wilcox.test(1:6, c(4.5, 7:11), exact = FALSE)."""
    assert rank_probability([1, 2, 3, 4, 5, 6], [4.5, 7, 8, 9, 10, 11]) == pytest.approx(
        0.0131, abs=1e-4
    )
    assert rank_probability([1.0] * 6, [1.0] * 6) == 1.0


def test_twice_as_fast_and_half_as_fast_cancel_out() -> None:
    assert geometric_mean([1.0, -0.5]) == pytest.approx(0.0)
    assert geometric_mean([]) is None
