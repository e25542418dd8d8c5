"""A trace as a CSV file: a line for each pod, or for several alike, that comes at a time.

    arrival,duration,count,namespace,name,priority,cpu,memory,nvidia.com/gpu
    0,3600,1,lab,train,0,8,64Gi,4
    12.5,60,20,shop,batch,10,500m,1Gi,0

`docs/traces.md` describes the columns. The OpenB trace, nodes and pods of a GPU cluster that ran
in production, has CSV files with columns of its own.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moorage.documents.errors import DecodeError, InputError
from moorage.documents.files import sources
from moorage.documents.yaml_text import read_document
from moorage.objects.decode import from_builtins
from moorage.objects.node import HOSTNAME, Node
from moorage.objects.pod import Pod

from .arrivals import Arrival, ArrivalTrace

# Enough for a petabyte in MiB; what has more digits is no amount of anything here.
_MOST_DIGITS = 12


@dataclass(frozen=True, slots=True)
class CsvRow:
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
        return InputError(self.file, f"line {self.line}", field, f"{what}: {self.fields[field]!r}")


def read_rows(path: Path, key: str = "") -> Iterator[CsvRow]:
    """Yields the lines after the header. With `key`, that field must differ in every line."""
    (source,) = sources([str(path)])
    lines = csv.reader(source.text.splitlines(), strict=True)
    seen: set[str] = set()
    is_empty = True
    try:
        header = next(lines, [])
        for values in lines:
            if len(values) != len(header):
                many = f"{len(values)} fields, but the header has {len(header)}"
                raise InputError(path, f"line {lines.line_num}", many)
            row = CsvRow(str(path), lines.line_num, dict(zip(header, values, strict=True)))
            if key:
                _expect_name(row, key, seen)
            is_empty = False
            yield row
    except csv.Error as error:
        raise InputError(path, f"line {lines.line_num}", error) from error
    if is_empty:
        raise InputError(path, "there is nothing below the header")


def _expect_name(row: CsvRow, key: str, seen: set[str]) -> None:
    name = row.text(key)
    if not name or name in seen:
        raise row.problem(key, "occurs more than once" if name else "must not be empty")
    seen.add(name)


_ARRIVAL, _DURATION, _COUNT = "arrival", "duration", "count"
_NAMES = ("namespace", "name", "priority", "scheduler", "node_selector", "template")
_OWN = frozenset((_ARRIVAL, _DURATION, _COUNT, *_NAMES))

# More copies in one line are a mistake.
_MOST_COPIES = 1_000_000

Manifest = dict[str, Any]


def read_csv_trace(path: Path) -> ArrivalTrace:
    """Reads the pods of a file; the cluster comes from elsewhere. Raises InputError."""
    templates: dict[str, Manifest] = {}
    found = [each for row in read_rows(path) for each in _arrivals(row, path, templates)]
    # Pods of the same moment stay in the order of the file.
    found.sort(key=lambda each: each.at)
    return ArrivalTrace(path.stem, tuple(found))


def _arrivals(row: CsvRow, path: Path, templates: dict[str, Manifest]) -> Iterator[Arrival]:
    at = _seconds(row, _ARRIVAL)
    duration = _seconds(row, _DURATION) if row.fields.get(_DURATION) else None
    copies = row.number(_COUNT) if row.fields.get(_COUNT) else 1
    if not 1 <= copies <= _MOST_COPIES:
        raise row.problem(_COUNT, f"must be from 1 to {_MOST_COPIES:,}")
    manifest = _make_manifest(row, _read_template(row, path, templates))
    name = row.fields.get("name") or f"line-{row.line}"
    for copy in range(copies):
        yield Arrival(
            at, _make_pod(row, manifest, f"{name}-{copy}" if copies > 1 else name), duration
        )


def _seconds(row: CsvRow, field: str) -> float:
    text = row.text(field)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < 1e12:
        raise row.problem(field, "not a number of seconds")
    return value


def _make_manifest(row: CsvRow, template: Manifest) -> Manifest:
    """Makes a pod without a name, from the template and the fields of the line."""
    spec = dict(template.get("spec") or {})
    requests = {
        name: value
        for name, value in row.fields.items()
        if name not in _OWN and value not in ("", "0")
    }
    if requests:
        # Extended resources must be limits, too.
        limits = {name: value for name, value in requests.items() if "/" in name}
        own = {"name": "main", "image": "trace", **((spec.get("containers") or [{}])[0])}
        own["resources"] = {"requests": requests, "limits": limits}
        spec["containers"] = [own, *(spec.get("containers") or [{}])[1:]]
    spec.setdefault("containers", [{"name": "main", "image": "trace"}])
    if row.fields.get("priority"):
        spec["priority"] = _read_priority(row)
    if row.fields.get("scheduler"):
        spec["schedulerName"] = row.text("scheduler")
    if row.fields.get("node_selector"):
        spec["nodeSelector"] = _read_selector(row)
    metadata = dict(template.get("metadata") or {})
    metadata["namespace"] = row.fields.get("namespace") or metadata.get("namespace") or "default"
    return {"metadata": metadata, "spec": spec}


def _make_pod(row: CsvRow, manifest: Manifest, name: str) -> Pod:
    metadata = {**manifest["metadata"], "name": name}
    # Lines may name pods alike, which come and go at different times.
    metadata["uid"] = f"{metadata['namespace']}/{name}@{row.line}"
    try:
        pod = from_builtins("Pod", {**manifest, "metadata": metadata})
    except DecodeError as error:
        raise InputError(row.file, f"line {row.line}", error) from None
    assert isinstance(pod, Pod)
    return pod


def _read_priority(row: CsvRow) -> int:
    text = row.text("priority")
    if not text.removeprefix("-").isdigit() or len(text) > 11:
        raise row.problem("priority", "not a whole number")
    return int(text)


def _read_selector(row: CsvRow) -> dict[str, str]:
    pairs = [each.partition("=") for each in row.text("node_selector").split(";")]
    if not all(key and equals for key, equals, _ in pairs):
        raise row.problem("node_selector", "must be label=value;label=value")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _read_template(row: CsvRow, path: Path, templates: dict[str, Manifest]) -> Manifest:
    """Reads the manifest of a pod that a line names, relative to the file."""
    name = row.fields.get("template")
    if not name:
        return {}
    if name not in templates:
        try:
            found = read_document((path.parent / name).read_bytes())
        except (OSError, DecodeError) as error:
            raise row.problem("template", str(error)) from None
        if not isinstance(found, dict) or found.get("kind") != "Pod":
            raise row.problem("template", "must be the manifest of a Pod")
        templates[name] = found
    return templates[name]


#: The files of the trace, of which there are several lists of pods.
NODES, PODS = "openb_node_list_all_node.csv", "openb_pod_list_default.csv"

GPU = "nvidia.com/gpu"

#: The label of a node that tells the model of its GPUs.
MODEL = "gpu-model"

# A kubelet's default; the trace does not say.
_PODS_PER_NODE = "110"

NodeResources = Mapping[str, Any]


def is_openb(path: Path) -> bool:
    """Whether a path is the folder of the trace, or one of its lists of pods."""
    folder = path if path.is_dir() else path.parent
    return (folder / NODES).exists() and (path.is_dir() or path.name.startswith("openb_pod_list"))


def read_openb(path: Path) -> ArrivalTrace:
    """Reads the trace in a folder, or one list of pods of it. Raises InputError."""
    folder, pods = (path, path / PODS) if path.is_dir() else (path.parent, path)
    nodes = [_node(row) for row in read_rows(folder / NODES, "sn")]
    arrivals = [_arrival(row) for row in read_rows(pods, "name")]
    # Pods of the same second stay in the order of the file.
    arrivals.sort(key=lambda each: each.at)
    return ArrivalTrace(pods.stem, tuple(arrivals), tuple(nodes))


def _arrival(row: CsvRow) -> Arrival:
    created = row.number("creation_time")
    # Lists that others have made of this one may not say when pods end.
    ends = row.fields.get("deletion_time")
    if not ends:
        return Arrival(float(created), _pod(row))
    began = row.number("scheduled_time") if row.fields.get("scheduled_time") else created
    return Arrival(float(created), _pod(row), float(max(0, row.number("deletion_time") - began)))


def _node(row: CsvRow) -> Node:
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


def _pod(row: CsvRow) -> Pod:
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


def _room(row: CsvRow) -> NodeResources:
    return {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi"}


def _models(row: CsvRow) -> NodeResources:
    if not row.text("gpu_spec"):
        return {}
    models = row.text("gpu_spec").split("|")
    if "" in models:
        raise row.problem("gpu_spec", "must not have an empty model")
    term = {"matchExpressions": [{"key": MODEL, "operator": "In", "values": models}]}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": rule}}
