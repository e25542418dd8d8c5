"""The OpenB trace: nodes and pods of a GPU cluster in production, read from its CSV files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mooring.objects.decode import from_builtins
from mooring.objects.node import HOSTNAME, Node
from mooring.objects.pod import Pod

from .arrivals import Arrival, ArrivalTrace
from .csv_trace import CsvRow, read_rows

#: The files of the trace, of which there are several lists of pods.
NODES, PODS = "openb_node_list_all_node.csv", "openb_pod_list_default.csv"

GPU = "nvidia.com/gpu"

#: The label of a node that tells the model of its GPUs.
MODEL = "gpu-model"

# A kubelet's default; the trace does not say.
_PODS_PER_NODE = "110"

Manifest = Mapping[str, Any]


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


def _room(row: CsvRow) -> Manifest:
    return {"cpu": f"{row.number('cpu_milli')}m", "memory": f"{row.number('memory_mib')}Mi"}


def _models(row: CsvRow) -> Manifest:
    if not row.text("gpu_spec"):
        return {}
    models = row.text("gpu_spec").split("|")
    if "" in models:
        raise row.problem("gpu_spec", "names no model in one place")
    term = {"matchExpressions": [{"key": MODEL, "operator": "In", "values": models}]}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": rule}}
