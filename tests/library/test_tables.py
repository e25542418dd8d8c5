"""Tables of a cluster: the same keys and types in each row, in every library for tables."""

from __future__ import annotations

from typing import Any

import pytest

import moorage
from moorage.library.tables import Table
from tests.builders import node_manifest, pod_manifest

_ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def cluster() -> moorage.ClusterSnapshot:
    """150 nodes, of which the last one has GPUs, a pod that uses one, and one that is done."""
    plain = [node_manifest(f"n{number:03}") for number in range(149)]
    labels = {_ZONE: "east", "node-role.kubernetes.io/gpu": "", "pool": "gpu"}
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    ready = [{"type": "Ready", "status": "False"}]
    gpus = node_manifest(
        "gpus", labels=labels, spec={"taints": [taint]}, status={"conditions": ready}, gpu=8
    )
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    return moorage.ClusterSnapshot(()).add(
        *plain,
        gpus,
        pod_manifest("waits", cpu=1),
        pod_manifest(
            "trains",
            node="gpus",
            labels={"app": "train"},
            metadata={"ownerReferences": [owner]},
            gpu=3,
        ),
        pod_manifest("done", node="gpus", status={"phase": "Succeeded"}, gpu=1),
    )


def _types(table: Table) -> dict[str, type]:
    """The type of each column, which is the same in each row."""
    (only,) = {tuple((key, type(value)) for key, value in row.items()) for row in table}
    return dict(only)


def test_rows_have_the_same_keys_and_types(cluster: moorage.ClusterSnapshot) -> None:
    nodes, pods = _types(cluster.node_table()), _types(cluster.pod_table())

    assert (
        nodes["allocatable.example.com/gpu"]
        is nodes["requested.example.com/gpu"]
        is pods["example.com/gpu"]
        is int
    )
    assert nodes["label.pool"] is pods["label.app"] is str
    assert nodes["ready"] is nodes["unschedulable"] is bool


def test_a_row_says_what_its_node_is_and_holds(cluster: moorage.ClusterSnapshot) -> None:
    row = cluster.node_table()[-1]

    assert {key: row[key] for key in ("name", "zone", "roles", "ready", "taints", "pods")} == {
        "name": "gpus",
        "zone": "east",
        "roles": "gpu",
        "ready": False,
        "taints": "gpu=yes:NoSchedule",
        "pods": 1,
    }
    assert (row["allocatable.example.com/gpu"], row["requested.example.com/gpu"]) == (8, 3)
    assert (row["label.pool"], cluster.node_table()[0]["label.pool"]) == ("gpu", "")


def test_a_row_says_what_its_pod_is_and_asks_for(cluster: moorage.ClusterSnapshot) -> None:
    rows = {row["name"]: row for row in cluster.pod_table()}

    assert {name: (row["phase"], row["zone"]) for name, row in rows.items()} == {
        "waits": ("Pending", ""),
        "trains": ("Running", "east"),
        "done": ("Succeeded", "east"),
    }
    assert (rows["waits"]["cpu"], rows["waits"]["example.com/gpu"]) == (1000, 0)
    assert (rows["trains"]["owner_kind"], rows["trains"]["owner"]) == ("Job", "j")
    assert rows["trains"]["label.app"] == "train"


def test_pandas_and_polars_see_the_same_types(cluster: moorage.ClusterSnapshot) -> None:
    pytest.importorskip("pandas", reason="needs pandas (pip install 'moorage[test]')")
    polars: Any = pytest.importorskip("polars", reason="needs polars (pip install 'moorage[test]')")
    in_polars = {int: polars.Int64, str: polars.String, bool: polars.Boolean}
    in_pandas = {int: "i", bool: "b"}

    for table in (cluster.node_table(), cluster.pod_table()):
        types = _types(table)
        frame, other = table.to_pandas(), polars.DataFrame(table)
        assert dict(other.schema) == {key: in_polars[kind] for key, kind in types.items()}
        assert list(frame.columns) == other.columns
        for key, kind in types.items():
            assert frame[key].dtype.kind == in_pandas.get(kind, "O")
            assert frame[key].tolist() == other[key].to_list() == [row[key] for row in table]
