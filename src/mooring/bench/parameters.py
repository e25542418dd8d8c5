"""Putting a workload's parameters into its operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

import msgspec

from mooring.config.problems import shown

from .cases import Job, Parameter, convert, load_yaml
from .operations import CreatePods, CreatePodSets, Operation

_SUFFIX = "_param"
_MULTIPLIER = "count_multiplier_param"

#: Read by the harness itself: so many features are declared by every node.
DECLARED_FEATURES = "numNodeDeclaredFeatures"


def resolved(job: Job) -> tuple[Operation, ...]:
    """The operations with their values; pod sets become one operation for each namespace.

    A parameter that no operation uses is a mistake, as one that is missing is.
    """
    reader = _Reader(job)
    operations = tuple(
        operation
        for at, written in enumerate(job.case.operations)
        for operation in reader.unrolled(written, f"workloadTemplate[{at}]")
    )
    unused = job.workload.params.keys() - reader.used - {DECLARED_FEATURES}
    for name in sorted(unused):
        raise job.error(f"params.{name}", "is not used by any operation")
    return operations


class _Reader:
    def __init__(self, job: Job) -> None:
        self._job = job
        self.used: set[str] = set()

    def unrolled(self, operation: Operation, where: str) -> Iterator[Operation]:
        filled = self._filled(operation, where)
        if not isinstance(filled, CreatePodSets):
            yield filled
            return
        pods = self._filled(filled.create_pods_op, f"{where}.createPodsOp")
        for number in range(filled.count):
            namespace = f"{filled.namespace_prefix}-{number}"
            yield msgspec.structs.replace(pods, namespace=namespace)

    def _filled(self, operation: Operation, where: str) -> Operation:
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
            raise self._job.error(where, f"must begin with $, got {shown(written)}")
        name = written[1:]
        if name not in self._job.workload.params:
            raise self._job.error(where, f"the parameter {shown(name)} is not defined")
        self.used.add(name)
        return self._job.workload.params[name]


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
