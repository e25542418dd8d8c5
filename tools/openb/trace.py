"""The OpenB trace: nodes and pods of a GPU cluster in production, read from its CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mooring.documents.errors import InputError
from mooring.documents.files import sources
from mooring.objects.decode import from_builtins
from mooring.objects.node import HOSTNAME, Node
from mooring.objects.pod import Pod

#: The files of the trace, of which there are several lists of pods.
NODES, PODS = "openb_node_list_all_node.csv", "openb_pod_list_default.csv"

GPU = "nvidia.com/gpu"

#: The label of a node that tells the model of its GPUs.
MODEL = "gpu-model"

# What a kubelet takes unless told otherwise; the trace does not say.
_PODS_PER_NODE = "110"

# Enough for a petabyte in MiB; what has more digits is no amount of anything here.
_MOST_DIGITS = 12

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trace:
    """A cluster, and its pods in the order in which they were created."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]


def read(folder: Path, pods: str = PODS) -> Trace:
    """The trace in a folder; raises InputError with file, line and field."""
    nodes = [_node(row) for row in _rows(folder / NODES, "sn")]
    created = [(row.number("creation_time"), _pod(row)) for row in _rows(folder / pods, "name")]
    # Pods of the same second stay in the order of the file.
    created.sort(key=lambda each: each[0])
    return Trace(tuple(nodes), tuple(pod for _, pod in created))


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of a file: its fields by the names in the header."""

    file: str
    line: int
    fields: Mapping[str, str]

    def text(self, field: str) -> str:
        if field not in self.fields:
            raise InputError(self.file, f"there is no column {field!r}")
        return self.fields[field]

    def number(self, field: str) -> int:
        text = self.text(field)
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
            raise self.problem(field, f"not a whole number of at most {_MOST_DIGITS} digits")
        return int(text)

    def problem(self, field: str, what: str) -> InputError:
        found = self.fields[field]
        return InputError(self.file, f"line {self.line}", field, f"{what}: {found!r}")


def _rows(path: Path, key: str) -> Iterator[_Row]:
    """The lines after the header; in field `key` each has a name of its own."""
    (source,) = sources([str(path)])
    lines = csv.reader(source.text.splitlines(), strict=True)
    seen: set[str] = set()
    try:
        header = next(lines, [])
        for values in lines:
            if len(values) != len(header):
                many = f"{len(values)} fields, but the header has {len(header)}"
                raise InputError(path, f"line {lines.line_num}", many)
            row = _Row(str(path), lines.line_num, dict(zip(header, values, strict=True)))
            name = row.text(key)
            if not name or name in seen:
                raise row.problem(key, "there is one already" if name else "must not be empty")
            seen.add(name)
            yield row
    except csv.Error as error:
        raise InputError(path, f"line {lines.line_num}", error) from error
    if not seen:
        raise InputError(path, "there is nothing below the header")


def _node(row: _Row) -> Node:
    name, model = row.text("sn"), row.text("model")
    gpus = {GPU: str(row.number("gpu"))} if row.number("gpu") else {}
    node = from_builtins(
        "Node",
        {
            "metadata": {
                "name": name,
                "labels": {HOSTNAME: name, **({MODEL: model} if model else {})},
            },
            "status": {"allocatable": {**_room(row), "pods": _PODS_PER_NODE, **gpus}},
        },
    )
    assert isinstance(node, Node)
    return node


def _pod(row: _Row) -> Pod:
    name = row.text("name")
    # A share of a GPU has num_gpu 1: rounded up, it is that.
    gpus = {GPU: str(row.number("num_gpu"))} if row.number("num_gpu") else {}
    resources = {"requests": {**_room(row), **gpus}, "limits": gpus}
    pod = from_builtins(
        "Pod",
        {
            "metadata": {"name": name, "namespace": "openb", "uid": name},
            "spec": {"containers": [{"name": "main", "resources": resources}], **_models(row)},
        },
    )
    assert isinstance(pod, Pod)
    return pod


def _room(row: _Row) -> Manifest:
    return {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi"}


def _models(row: _Row) -> Manifest:
    if not row.text("gpu_spec"):
        return {}
    models = row.text("gpu_spec").split("|")
    if "" in models:
        raise row.problem("gpu_spec", "names no model in one place")
    term = {"matchExpressions": [{"key": MODEL, "operator": "In", "values": models}]}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": rule}}
