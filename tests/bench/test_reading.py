"""Test cases are read_jobs strictly; mistakes name file, workload and field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.bench.cases import FILE_NAME, Job, WorkloadError, read_jobs, resolve, select
from moorage.bench.operations import CreatePods
from tests.bench.workloads import LARGE_POD, MEASURED, NODES, Runs, case, job


def with_params(*operations: dict[str, Any], **params: Any) -> dict[str, Any]:
    return case(*operations, workloads=[{"name": "Only", "params": params}])


COUNTED = {"opcode": "createPods", "countParam": "$pods", "collectMetrics": True}


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            case({"opcode": "createPlants"}, MEASURED),
            'Case: workloadTemplate[0]: opcode: unknown opcode "createPlants"',
        ),
        (
            case({**MEASURED, "cuont": 3}),
            "Case: workloadTemplate[0]: cuont: unknown field",
        ),
        (
            case({**MEASURED, "count": "many"}),
            'Case: workloadTemplate[0]: count: must be an integer, got "many"',
        ),
        (
            case({**MEASURED, "count": -1}),
            "Case: workloadTemplate[0]: count: must not be negative, got -1",
        ),
        (
            case({**MEASURED, "skipWaitToCompletion": True}),
            "Case: workloadTemplate[0]: collectMetrics and skipWaitToCompletion exclude each other",
        ),
        (
            case({**MEASURED, "steadyState": True}),
            "Case: workloadTemplate[0]: duration: is required in a steady state",
        ),
        (
            case({**MEASURED, "duration": "soon"}),
            "Case: workloadTemplate[0]: duration: must be a duration such as 15s, 1m30s or 500ms, "
            'got "soon"',
        ),
        (
            case({"opcode": "churn", "mode": "recreate", "templatePaths": ["a"]}, MEASURED),
            "Case: workloadTemplate[0]: number: must be positive in mode recreate, got 0",
        ),
        (case(NODES), "Case: workloadTemplate: no operation collects metrics"),
        (case(MEASURED, workloads=[]), "Case: workloads: must not be empty"),
        (
            case(MEASURED, workloads=[{"name": "A"}, {"name": "A"}]),
            'Case: workloads: the name "A" is not unique',
        ),
        (case(MEASURED, labels="none"), 'Case: labels: must be a list, got "none"'),
        (
            with_params(COUNTED),
            'Case/Only: workloadTemplate[0].countParam: the parameter "pods" is not defined',
        ),
        (with_params(COUNTED, pods="x"), 'Case/Only: params.pods: must be an integer, got "x"'),
        (with_params(COUNTED, pods=True), "Case/Only: params.pods: must be an integer, got true"),
        (with_params(MEASURED, pods=3), "Case/Only: params.pods: is not used by any operation"),
        (
            with_params({**MEASURED, "countParam": "pods"}, pods=3),
            'Case/Only: workloadTemplate[0].countParam: must begin with $, got "pods"',
        ),
    ],
)
def test_mistakes(tmp_path: Path, written: dict[str, Any], told: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        resolve(job(tmp_path, written))
    assert str(refused.value) == f"{tmp_path / FILE_NAME}: {told}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "line 2, column 1"),
        ("name: x", "must be a list of test cases, got a mapping"),
        ("[]", "must be a list of test cases, got a list"),
        ("- name: A\n  name: B", 'line 2, column 3: duplicate key "name"'),
    ],
)
def test_text_that_is_no_test_case(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / FILE_NAME
    file.write_text(text)
    with pytest.raises(WorkloadError, match=r"performance-config\.yaml: ") as refused:
        list(read_jobs(file))
    assert told in str(refused.value)


def test_templates_that_are_missing_or_no_objects_are_named(tmp_path: Path) -> None:
    for template, told in (
        ("absent.yaml", "absent.yaml: no such file or directory"),
        ("empty.yaml", "empty.yaml: must be an object, got null"),
        ("kindless.yaml", "kindless.yaml: kind: is required"),
    ):
        texts = {"empty": "", "kindless": "apiVersion: v1"}
        written = case({**MEASURED, "podTemplatePath": template})
        with pytest.raises(WorkloadError) as refused:
            Runs()(job(tmp_path, written, **texts))
        assert str(refused.value) == f"{tmp_path}/{told}"


def test_a_folder_is_searched_and_its_parts_are_topics(tmp_path: Path) -> None:
    for folder in ("a", "b/c"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / FILE_NAME).write_text(yaml.safe_dump([case(MEASURED)]))
    assert [each.full_name for each in read_jobs(tmp_path)] == ["a/Case/Only", "b/c/Case/Only"]


def test_an_empty_folder_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"no performance-config\.yaml in this folder"):
        list(read_jobs(tmp_path))


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ("", "ABC"),
        ("performance", "AB"),
        ("performance,short", "B"),
        ("+performance,-short", "A"),
        ("-performance", "C"),
        ("case-label", "ABC"),
    ],
)
def test_label_filters(tmp_path: Path, labels: str, names: str) -> None:
    workloads = [
        {"name": "A", "labels": ["performance"]},
        {"name": "B", "labels": ["performance", "short"]},
        {"name": "C", "labels": ["integration-test"]},
    ]
    job(tmp_path, case(MEASURED, workloads=workloads, labels=["case-label"]))
    chosen = select(read_jobs(tmp_path / FILE_NAME), labels)
    assert "".join(each.workload.name for each in chosen) == names


def parameters(tmp_path: Path, operation: dict[str, Any], **params: Any) -> CreatePods:
    made: Job = job(tmp_path, with_params(operation, **params), large=LARGE_POD)
    (found,) = resolve(made)
    assert isinstance(found, CreatePods)
    return found


def test_parameters_go_before_what_is_written(tmp_path: Path) -> None:
    operation = {**COUNTED, "count": 1, "countMultiplierParam": "$times"}
    assert parameters(tmp_path, operation, pods=3, times=4).count == 12


def test_parameters_of_templates_may_have_something_in_their_stead(tmp_path: Path) -> None:
    given = {"a": "$a", "b": "$b|7", "c": "$c|7", "d": "plain"}
    operation = {**MEASURED, "templateParams": given}
    found = parameters(tmp_path, operation, a="x", b=3)
    assert found.template_params == {"a": "x", "b": 3, "c": 7, "d": "plain"}


def test_pod_sets_become_one_operation_for_each_namespace(tmp_path: Path) -> None:
    sets = {
        "opcode": "createPodSets",
        "countParam": "$sets",
        "namespacePrefix": "ns",
        "createPodsOp": {"opcode": "createPods", "countParam": "$pods"},
    }
    made = job(tmp_path, with_params(sets, MEASURED, sets=2, pods=3))
    unrolled = [each for each in resolve(made) if isinstance(each, CreatePods)]
    assert [(each.namespace, each.count) for each in unrolled] == [
        ("ns-0", 3),
        ("ns-1", 3),
        (None, 4),
    ]
