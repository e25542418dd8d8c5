"""`moorage bench`: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.invoking import Moorage

CASE: dict[str, Any] = {
    "name": "Case",
    "workloadTemplate": [
        {"opcode": "createNodes", "countParam": "$initNodes"},
        {"opcode": "createPods", "countParam": "$measurePods", "collectMetrics": True},
    ],
    "workloads": [
        {
            "name": name,
            "labels": ["performance", name],
            "params": {"initNodes": 2, "measurePods": 3},
        }
        for name in ("one", "two")
    ],
}
NEEDY = {
    **CASE,
    "name": "Needy",
    "featureGates": {"DRADerivedAttributes": True},
}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    file = tmp_path / "performance-config.yaml"
    file.write_text(yaml.safe_dump([CASE, NEEDY]))
    return file


def test_workloads_are_run_and_told(moorage: Moorage, suite: Path) -> None:
    result = moorage("bench", str(suite))

    lines = result.out.splitlines()
    topic = suite.parent.name
    assert result.code == 0
    assert [line.split()[0] for line in lines[1:]] == [
        f"{topic}/{case}/{name}" for case in ("Case", "Needy") for name in ("one", "two")
    ]
    assert lines[3].endswith("not supported")
    told = f"{topic}/Needy/one: not supported: DRADerivedAttributes: not supported by Moorage yet"
    assert told in result.err.splitlines()


def test_workloads_are_chosen_by_name_and_label(moorage: Moorage, suite: Path) -> None:
    result = moorage("bench", str(suite), "--filter", "^[^/]*/Case", "--labels", "two")
    assert len(result.out.splitlines()) == 2
    assert "Case/two" in result.out


def test_results_are_written(moorage: Moorage, suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    moorage("bench", str(suite), "--filter", "Case/one", "--count", "2", "--out", str(out))

    written = json.loads((out / "results.json").read_text())
    assert written["version"] == "v1"
    assert written["run"].keys() >= {"machine", "commit", "command", "python", "date", "target"}
    assert written["run"]["command"].startswith(f"moorage bench {suite.name} ")
    names = [each["labels"]["Metric"] for each in written["dataItems"]]
    assert names.count("SchedulingThroughput") == 2


def test_a_mistake_in_one_workload_keeps_no_other_from_running(
    moorage: Moorage, suite: Path
) -> None:
    first, second = CASE["workloads"]
    wrong = {**first, "params": {"initNodes": 2}}
    suite.write_text(yaml.safe_dump([{**CASE, "workloads": [wrong, second]}]))

    result = moorage("bench", str(suite))

    assert result.code == 1
    told = f'failed: {suite}: Case/one: workloadTemplate[1].countParam: the parameter "measurePods"'
    assert told in result.err
    assert "Case/two: " in result.err


def test_a_missed_threshold_is_an_error(moorage: Moorage, suite: Path) -> None:
    workloads = [{**CASE["workloads"][0], "threshold": 1e12}]
    suite.write_text(yaml.safe_dump([{**CASE, "workloads": workloads}]))

    result = moorage("bench", str(suite))

    assert result.code == 1
    assert "is not above the threshold of 1,000,000,000,000.0 pods/s" in result.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("absent",), "absent: no such file or directory"),
        (("{suite}", "--labels", "nobody"), "no workload has the labels 'nobody' and matches ''"),
        (("{suite}", "--filter", "("), "missing ), unterminated subpattern"),
        (("{suite}", "--target", "cloud"), "'cloud' is not engine, embedded or a kubeconfig file"),
        (
            ("{suite}", "--feature-gates", "Nope=true"),
            "--feature-gates: Nope: unknown feature gate",
        ),
        (("compare", "absent", "{suite}"), "absent: no such file or directory"),
        (("compare", "{suite}", "{suite}"), "performance-config.yaml: JSON is malformed"),
    ],
)
def test_mistakes_are_told_without_a_traceback(
    moorage: Moorage, suite: Path, arguments: tuple[str, ...], told: str
) -> None:
    result = moorage("bench", *(each.format(suite=suite) for each in arguments))
    assert result.code == 2
    assert told in " ".join(result.err.replace("│", " ").split())


def test_a_scheduler_configuration_beside_the_suite_is_used(moorage: Moorage, suite: Path) -> None:
    named = {**CASE, "schedulerConfigPath": "scheduler.yaml"}
    suite.write_text(yaml.safe_dump([named]))
    told = moorage("bench", str(suite))
    assert (told.code, "scheduler.yaml: no such file" in told.err) == (2, True)

    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "other"}],
    }
    (suite.parent / "scheduler.yaml").write_text(yaml.safe_dump(config))
    ignored = moorage("bench", str(suite))
    # Nobody serves the pods, because they ask for another scheduler.
    assert (ignored.code, "3 pods stay pending" in ignored.err) == (1, True)


def test_results_are_compared(moorage: Moorage, tmp_path: Path) -> None:
    for name, rates in (("before", range(100, 106)), ("after", range(200, 206))):
        labels = {"Name": "BenchmarkPerfScheduling/A/B/c", "Metric": "SchedulingThroughput"}
        items = [{"data": {"Average": rate}, "unit": "pods/s", "labels": labels} for rate in rates]
        text = json.dumps({"version": "v1", "dataItems": items})
        (tmp_path / f"{name}.json").write_text(text)

    result = moorage(
        "bench", "compare", *(str(tmp_path / f"{n}.json") for n in ("before", "after"))
    )

    row = next(line for line in result.out.splitlines() if line.startswith("A/B/c"))
    assert row.split() == ["A/B/c", "102.5", "±2%", "202.5", "±1%", "+97.6%", "0.005", "n=6+6"]


def test_gates_are_compared_in_turns(moorage: Moorage) -> None:
    ended = moorage(
        "bench",
        "gates",
        "benchmarks/core",
        "CoexistPolicy=false",
        "--filter=PlainPods/10Nodes",
        "--labels=integration-test",
        "--count=2",
    )

    assert ended.code in (0, None), ended.err
    assert "CoexistPolicy=false" in ended.out
    assert "PlainPods/10Nodes" in ended.out


def test_a_gate_that_is_none_is_refused(moorage: Moorage) -> None:
    ended = moorage("bench", "gates", "benchmarks/core", "Nothing=false")

    assert ended.code == 2
    assert "Nothing" in ended.err
