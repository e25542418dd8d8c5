"""Workloads as files describe them: test cases, their workloads, and parameters filled in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from moorage.documents import conversion
from moorage.documents.errors import DecodeError, InputError, Problems, describe
from moorage.documents.yaml_text import read_document

from .operations import CreatePods, CreatePodSets, Operation


class WorkloadError(InputError):
    """A workload that cannot be used; the text names file, workload and field."""


class NotPlaced(RuntimeError):
    """A pod that should be placed was not, so the run's time means nothing."""


class RunFailed(RuntimeError):
    """The run failed: the API server refused a request, or the scheduler ended."""


class NotSupported(Exception):
    """The workload needs something that Moorage does not have; the text says what."""


#: What a file of test cases is called in a folder.
FILE_NAME = "performance-config.yaml"

Parameter = Any


class _Document(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A mapping in a file; unknown fields are refused."""


class MetricSelector(_Document, frozen=True, kw_only=True):
    """Which figure a threshold is compared with."""

    name: str = "SchedulingThroughput"
    labels: Mapping[str, str] = {}
    data_bucket: str = "Average"
    expect_lower: bool = False


class BenchWorkload(_Document, frozen=True, kw_only=True):
    """One size of a test case."""

    name: str
    params: Mapping[str, Parameter] = {}
    labels: tuple[str, ...] = ()
    threshold: float | Mapping[str, float] = 0.0
    threshold_metric_selector: MetricSelector | None = None
    feature_gates: Mapping[str, bool] = {}

    def threshold_for(self, topic: str) -> float:
        """Returns the threshold in the file of a topic; 0 is none."""
        if isinstance(self.threshold, Mapping):
            return self.threshold.get(topic, 0.0)
        return self.threshold


class CaseDocument(_Document, frozen=True, kw_only=True):
    name: str
    workload_template: tuple[Mapping[str, Any], ...]
    workloads: tuple[BenchWorkload, ...]
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
    document: CaseDocument
    operations: tuple[Operation, ...]

    @property
    def name(self) -> str:
        return self.document.name


@dataclass(frozen=True, slots=True)
class Job:
    """A workload of a test case: what is run and measured."""

    case: TestCase
    workload: BenchWorkload

    @property
    def name(self) -> str:
        return f"{self.case.name}/{self.workload.name}"

    @property
    def full_name(self) -> str:
        return f"{self.case.topic}/{self.name}"

    @property
    def labels(self) -> frozenset[str]:
        return frozenset((*self.case.document.labels, *self.workload.labels))

    @property
    def gates(self) -> dict[str, bool]:
        return {**self.case.document.feature_gates, **self.workload.feature_gates}

    @property
    def selector(self) -> MetricSelector:
        """Which figure the threshold is compared with."""
        return (
            self.workload.threshold_metric_selector
            or self.case.document.default_threshold_metric_selector
            or MetricSelector()
        )

    def error(self, *parts: object) -> WorkloadError:
        """Makes an error about this workload: field and message."""
        return WorkloadError(self.case.file, self.name, *parts)


def read_jobs(path: Path) -> Iterator[Job]:
    """Reads the workloads of a file, or of every file of test cases below a folder."""
    if not path.is_dir():
        yield from _jobs(path, path.parent.name)
        return
    files = sorted(path.rglob(FILE_NAME))
    if not files:
        raise WorkloadError(path, f"no {FILE_NAME} in this folder")
    for file in files:
        yield from _jobs(file, file.parent.relative_to(path).as_posix().strip(".") or path.name)


def select(jobs: Iterable[Job], labels: str) -> Iterator[Job]:
    """Selects the workloads that have every label of a list, and none of those with a minus."""
    rules = [rule.strip() for rule in labels.split(",") if rule.strip()]
    for job in jobs:
        if all((rule.lstrip("+-") in job.labels) != rule.startswith("-") for rule in rules):
            yield job


def _jobs(file: Path, topic: str) -> Iterator[Job]:
    raw = load_yaml(file)
    if not isinstance(raw, list) or not raw:
        raise WorkloadError(file, f"must be a list of test cases, got {describe(raw)}")
    names: set[str] = set()
    for index, each in enumerate(raw):
        case = _case(file, topic, index, each)
        if case.name in names:
            raise WorkloadError(file, case.name, "name: is not unique")
        names.add(case.name)
        for workload in case.document.workloads:
            yield Job(case, workload)


def _case(file: Path, topic: str, index: int, raw: Any) -> TestCase:
    title = raw.get("name") if isinstance(raw, Mapping) else None
    where = title if isinstance(title, str) and title else f"[{index}]"
    written = convert(raw, CaseDocument, file, where)
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
            raise WorkloadError(file, where, f"workloads: the name {describe(name)} is not unique")
    return TestCase(file, topic, written, operations)


def _operation(raw: Any, file: Path, *where: str) -> Operation:
    operation: Operation = convert(raw, Operation, file, *where)
    if operation.problem is not None:
        raise WorkloadError(file, *where, operation.problem)
    return operation


def convert(raw: Any, kind: Any, file: Path, *where: str) -> Any:
    """Converts a YAML value to a type; raises WorkloadError that names the field."""
    problems = Problems()
    value = conversion.convert(kind, raw, "", problems)
    for problem in problems:
        raise WorkloadError(file, *where, problem)
    return value


def load_yaml(file: Path, text: str | None = None) -> Any:
    """Reads a YAML file, or the given text of it; raises WorkloadError."""
    try:
        return read_document(file.read_bytes() if text is None else text)
    except OSError as error:
        raise WorkloadError(file, (error.strerror or str(error)).lower()) from None
    except DecodeError as error:
        raise WorkloadError(file, error) from None


_SUFFIX = "_param"
_MULTIPLIER = "count_multiplier_param"

#: Read by the harness itself: so many features are declared by every node.
DECLARED_FEATURES = "numNodeDeclaredFeatures"


def resolve(job: Job) -> tuple[Operation, ...]:
    """Fills parameters into operations; a pod set becomes one operation for each namespace.

    A parameter that no operation uses is a mistake, as one that is missing is.
    """
    resolver = _Resolver(job)
    operations = tuple(
        operation
        for at, written in enumerate(job.case.operations)
        for operation in resolver.unroll(written, f"workloadTemplate[{at}]")
    )
    unused = job.workload.params.keys() - resolver.used - {DECLARED_FEATURES}
    for name in sorted(unused):
        raise job.error(f"params.{name}", "is not used by any operation")
    return operations


class _Resolver:
    def __init__(self, job: Job) -> None:
        self._job = job
        self.used: set[str] = set()

    def unroll(self, operation: Operation, where: str) -> Iterator[Operation]:
        filled = self._fill(operation, where)
        if not isinstance(filled, CreatePodSets):
            yield filled
            return
        pods = self._fill(filled.create_pods_op, f"{where}.createPodsOp")
        for number in range(filled.count):
            namespace = f"{filled.namespace_prefix}-{number}"
            yield msgspec.structs.replace(pods, namespace=namespace)

    def _fill(self, operation: Operation, where: str) -> Operation:
        changes: dict[str, Any] = {}
        types = get_type_hints(type(operation))
        for name in operation.__struct_fields__:
            written = getattr(operation, name)
            if name.endswith(_SUFFIX) and name != _MULTIPLIER and written:
                field = name.removesuffix(_SUFFIX)
                changes[field] = self._value(written, types[field], f"{where}.{_camel(name)}")
            elif name == "template_params":
                changes[name] = dict(self._template_values(written, f"{where}.templateParams"))
        if isinstance(operation, CreatePods) and operation.count_multiplier_param:
            place = f"{where}.{_camel(_MULTIPLIER)}"
            times = self._value(operation.count_multiplier_param, int, place)
            changes["count"] = changes.get("count", operation.count) * times
        filled = msgspec.structs.replace(operation, **changes)
        if filled.problem is not None:
            raise self._job.error(where, filled.problem)
        return filled

    def _template_values(self, written: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
        for name, value in written.items():
            if isinstance(value, str) and value.startswith("$"):
                # What is written after a bar stands in for a parameter that is not defined.
                wanted, bar, instead = value.partition("|")
                if bar and wanted[1:] not in self._job.workload.params:
                    value = load_yaml(self._job.case.file, instead)
                else:
                    value = self._parameter(wanted, f"{where}.{name}")
            yield name, value

    def _value(self, written: str, wanted: Any, where: str) -> Any:
        value = self._parameter(written, where)
        name = f"params.{written[1:]}"
        return convert(value, wanted, self._job.case.file, self._job.name, name)

    def _parameter(self, written: str, where: str) -> Parameter:
        if not written.startswith("$"):
            raise self._job.error(where, f"must begin with $, got {describe(written)}")
        name = written[1:]
        if name not in self._job.workload.params:
            raise self._job.error(where, f"the parameter {describe(name)} is not defined")
        self.used.add(name)
        return self._job.workload.params[name]


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
