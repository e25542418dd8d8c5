"""Test cases as they are written: a template of operations and the workloads that fill it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from mooring.config import document
from mooring.config.problems import Problems, shown
from mooring.objects.meta import decode_hook

from .operations import Operation
from .problems import WorkloadError

#: What a file of test cases is called in a folder.
FILE_NAME = "performance-config.yaml"

Parameter = Any


class _Written(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A mapping in a file; unknown fields are refused."""


class MetricSelector(_Written, frozen=True, kw_only=True):
    """Which figure a threshold is compared with."""

    name: str = "SchedulingThroughput"
    labels: Mapping[str, str] = {}
    data_bucket: str = "Average"
    expect_lower: bool = False


class Workload(_Written, frozen=True, kw_only=True):
    """One size of a test case."""

    name: str
    params: Mapping[str, Parameter] = {}
    labels: tuple[str, ...] = ()
    threshold: float | Mapping[str, float] = 0.0
    threshold_metric_selector: MetricSelector | None = None
    feature_gates: Mapping[str, bool] = {}

    def threshold_for(self, topic: str) -> float:
        """The threshold in the file of a topic; 0 is none."""
        if isinstance(self.threshold, Mapping):
            return self.threshold.get(topic, 0.0)
        return self.threshold


class _WrittenCase(_Written, frozen=True, kw_only=True):
    name: str
    workload_template: tuple[Mapping[str, Any], ...]
    workloads: tuple[Workload, ...]
    feature_gates: Mapping[str, bool] = {}
    # Figures are taken by the target, whatever is asked for here.
    metrics_collector_config: Mapping[str, Any] = {}
    scheduler_config_path: str = ""
    default_pod_template_path: str | None = None
    labels: tuple[str, ...] = ()
    default_threshold_metric_selector: MetricSelector | None = None


@dataclass(frozen=True, slots=True)
class TestCase:
    """Operations that all its workloads follow."""

    # Not a test of ours, whatever pytest thinks of its name.
    __test__ = False

    file: Path
    topic: str
    written: _WrittenCase
    operations: tuple[Operation, ...]

    @property
    def name(self) -> str:
        return self.written.name


@dataclass(frozen=True, slots=True)
class Job:
    """A workload of a test case: what is run and measured."""

    case: TestCase
    workload: Workload

    @property
    def name(self) -> str:
        return f"{self.case.name}/{self.workload.name}"

    @property
    def full_name(self) -> str:
        return f"{self.case.topic}/{self.name}"

    @property
    def labels(self) -> frozenset[str]:
        return frozenset((*self.case.written.labels, *self.workload.labels))

    @property
    def gates(self) -> dict[str, bool]:
        return {**self.case.written.feature_gates, **self.workload.feature_gates}

    @property
    def selector(self) -> MetricSelector:
        """Which figure the threshold is compared with."""
        return (
            self.workload.threshold_metric_selector
            or self.case.written.default_threshold_metric_selector
            or MetricSelector()
        )

    def error(self, *parts: object) -> WorkloadError:
        """What is wrong with this workload: field and message."""
        return WorkloadError(self.case.file, self.name, *parts)


def read(path: Path) -> Iterator[Job]:
    """The workloads of a file, or of every file of test cases below a folder."""
    if not path.is_dir():
        yield from _jobs(path, path.parent.name)
        return
    files = sorted(path.rglob(FILE_NAME))
    if not files:
        raise WorkloadError(path, f"no {FILE_NAME} in this folder")
    for file in files:
        yield from _jobs(file, file.parent.relative_to(path).as_posix().strip(".") or path.name)


def wanted(jobs: Iterable[Job], labels: str) -> Iterator[Job]:
    """The workloads that have every label of a comma-separated list, and none with a minus."""
    rules = [rule.strip() for rule in labels.split(",") if rule.strip()]
    for job in jobs:
        if all((rule.lstrip("+-") in job.labels) != rule.startswith("-") for rule in rules):
            yield job


def _jobs(file: Path, topic: str) -> Iterator[Job]:
    raw = load_yaml(file)
    if not isinstance(raw, list) or not raw:
        raise WorkloadError(file, f"must be a list of test cases, got {shown(raw)}")
    names: set[str] = set()
    for index, each in enumerate(raw):
        case = _case(file, topic, index, each)
        if case.name in names:
            raise WorkloadError(file, case.name, "name: is not unique")
        names.add(case.name)
        for workload in case.written.workloads:
            yield Job(case, workload)


def _case(file: Path, topic: str, index: int, raw: Any) -> TestCase:
    title = raw.get("name") if isinstance(raw, Mapping) else None
    where = title if isinstance(title, str) and title else f"[{index}]"
    written = convert(raw, _WrittenCase, file, where)
    operations = tuple(
        _operation(each, file, where, f"workloadTemplate[{at}]")
        for at, each in enumerate(written.workload_template)
    )
    if not any(operation.collects for operation in operations):
        raise WorkloadError(file, where, "workloadTemplate: no operation collects metrics")
    if not written.workloads:
        raise WorkloadError(file, where, "workloads: must not be empty")
    names = [workload.name for workload in written.workloads]
    for name in names:
        if names.count(name) > 1:
            raise WorkloadError(file, where, f"workloads: the name {shown(name)} is not unique")
    return TestCase(file, topic, written, operations)


def _operation(raw: Any, file: Path, *where: str) -> Operation:
    operation: Operation = convert(raw, Operation, file, *where)
    if operation.problem is not None:
        raise WorkloadError(file, *where, operation.problem)
    return operation


def convert(raw: Any, wanted: Any, file: Path, *where: str) -> Any:
    """A value of a type from what YAML gave; raises WorkloadError that names the field."""
    try:
        return msgspec.convert(raw, wanted, dec_hook=decode_hook, strict=True)
    except (msgspec.ValidationError, ValueError) as error:
        told, _, path = str(error).partition(" - at `$")
        raise WorkloadError(file, *where, path.strip(".`"), told) from None


def load_yaml(file: Path, text: str | None = None) -> Any:
    """What a YAML file holds, or this text of it; raises WorkloadError if it cannot be read."""
    problems = Problems()
    try:
        raw = document.read(file.read_bytes() if text is None else text, problems)
    except OSError as error:
        raise WorkloadError(file, (error.strerror or str(error)).lower()) from None
    for problem in problems:
        raise WorkloadError(file, problem)
    return raw
