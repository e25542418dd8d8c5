"""What nodes are asked for, and what is said about those that cannot be made."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.hollow.node_shapes import (
    ShapeError,
    make_nodes,
    plain_nodes,
    read_shape_file,
)
from tests.embedded.device_objects import SLICES
from tests.embedded.hollow.cluster import HollowCluster


def _made(*shapes: Any, source: str = "") -> list[dict[str, Any]]:
    cluster = HollowCluster()
    read = read_shape_file({"shapes": list(shapes)}, source)
    make_nodes(cluster.api, read.shapes, read.source)
    return cluster.listed("nodes")


def test_nodes_of_several_shapes() -> None:
    worker = {"name": "worker", "count": 3, "zones": ["a", "b"], "region": "r"}
    gpu = {
        "name": "gpu",
        "capacity": {"example.com/gpu": 8, "cpu": 32},
        "labels": {"kind": "gpu"},
        "annotations": {"note": "dear"},
        "taints": [{"key": "gpu", "effect": "NoSchedule"}],
        "images": [{"names": ["app:1"], "sizeBytes": 7}],
    }

    nodes = {each["metadata"]["name"]: each for each in _made(worker, gpu)}

    assert list(nodes) == ["gpu-0", "worker-0", "worker-1", "worker-2"]
    zones = [
        nodes[f"worker-{n}"]["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in (0, 1, 2)
    ]
    assert zones == ["a", "b", "a"]
    dear = nodes["gpu-0"]
    assert dear["status"]["allocatable"] == {
        "cpu": "32",
        "memory": "32Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
        "example.com/gpu": "8",
    }
    assert dear["spec"]["taints"] == [{"key": "gpu", "effect": "NoSchedule"}]
    assert dear["status"]["images"] == [{"names": ["app:1"], "sizeBytes": 7}]
    assert dear["metadata"]["annotations"] == {"note": "dear"}
    addresses = [each["status"]["addresses"][0]["address"] for each in nodes.values()]
    assert len(set(addresses)) == 4


def test_objects_for_each_node() -> None:
    cluster = HollowCluster()
    driver = {"name": "csi.example.com", "nodeID": "id-of-{node}"}
    item = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "{node}"},
        "spec": {"drivers": [driver]},
    }

    shapes = read_shape_file({"shapes": [{"count": 2, "objects": [item]}]}).shapes
    make_nodes(cluster.api, shapes)

    ids = [
        each["spec"]["drivers"][0]["nodeID"] for each in cluster.listed("csinodes.storage.k8s.io")
    ]
    assert ids == ["id-of-node-0", "id-of-node-1"]


def test_what_is_there_stays() -> None:
    cluster = HollowCluster()
    shapes = read_shape_file({"shapes": [{"count": 2}]}).shapes
    assert make_nodes(cluster.api, shapes[:1]) == 2

    more = read_shape_file({"shapes": [{"count": 3, "labels": {"new": "yes"}}]}).shapes
    assert make_nodes(cluster.api, more) == 1
    assert "new" not in cluster.listed("nodes")[0]["metadata"]["labels"]


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ({"count": "many"}, "shapes[0].count: Expected int, got str"),
        ({"count": -1}, "shapes[0].count: must be from 0 to 100000, got -1"),
        ({"kount": 3}, "shapes[0]: Object contains unknown field kount"),
        ({"name": "Worker_"}, "shapes[0].name: 'Worker_' cannot begin the names of nodes"),
        ({"capacity": {"cpu": "lots"}}, "shapes[0].capacity[cpu]: "),
        ({"capacity": {"cpu": -1}}, "shapes[0].capacity[cpu]: must not be negative, got -1"),
        ({"taints": [{"key": "a"}]}, "shapes[0].taints[0]: Object missing required field effect"),
        ({"capacity": {"a b": 1}}, "shapes[0].capacity[a b]: is not the name of a resource"),
        (
            {"images": [{"names": ["a"], "sizeBytes": -1}]},
            "shapes[0].images[0].sizeBytes: must not be negative, got -1",
        ),
        ({"images": [{"names": "a"}]}, "shapes[0].images[0].names: Expected array, got str"),
        ({"zones": [1]}, "shapes[0].zones[0]: Expected str, got int"),
        ({"objects": [{"kind": "CSINode"}]}, "shapes[0].objects[0].apiVersion: is missing"),
        ({"taints": [{"key": "a", "effect": "Never"}]}, "shapes[0]: Node 'node-0': Node"),
        (
            {"objects": [{"apiVersion": "x/v1", "kind": "Y", "metadata": {"name": "z"}}]},
            "shapes[0].objects[0]: Y 'z': x/v1 Y is not served here",
        ),
    ],
)
def test_shapes_that_make_no_sense(shape: Any, told: str) -> None:
    with pytest.raises(ShapeError) as refused:
        _made(shape)

    assert str(refused.value).startswith(told)


def test_a_node_that_cannot_be_made_is_told_with_its_file() -> None:
    with pytest.raises(ShapeError) as refused:
        _made({"labels": {"a b": "c"}}, source="nodes.yaml")

    told = """nodes.yaml: shapes[0]: Node 'node-0': Node "node-0" is invalid: metadata.labels: """
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ({}, "Object missing required field shapes"),
        ({"shapes": [], "source": "x"}, "Object contains unknown field source"),
        ({"shapes": 3}, "shapes: Expected array, got int"),
        ({"shapes": [{}, {}]}, "shapes[1].name: 'node' is the name of another shape, too"),
        ({"shapes": [{"count": 99_999}, {"name": "b", "count": 2}]}, "shapes: more than 100000"),
    ],
)
def test_files_that_make_no_sense(raw: Any, told: str) -> None:
    with pytest.raises(ShapeError) as refused:
        read_shape_file(raw)

    assert str(refused.value).startswith(told)


GPUS = {
    "driver": "gpu.example.com",
    "name": "gpu",
    "count": 2,
    "attributes": {"model": "A100", "healthy": True, "driverVersion": {"version": "1.2.3"}},
    "capacity": {"memory": "40Gi"},
    "taints": [{"key": "slow", "effect": "NoSchedule"}],
}


def test_devices_are_published() -> None:
    cluster = HollowCluster()
    nics = {"driver": "nic.example.com", "count": 130, "allowMultipleAllocations": True}
    read = read_shape_file({"shapes": [{"count": 2, "devices": [GPUS, nics]}]})
    make_nodes(cluster.api, read.shapes)

    slices = {each["metadata"]["name"]: each for each in cluster.listed(SLICES)}
    assert len(slices) == 6
    gpus = slices["node-1-gpu.example.com-0"]
    (owner,) = gpus["metadata"]["ownerReferences"]
    assert owner["uid"] == cluster.listed("nodes")[1]["metadata"]["uid"]
    assert gpus["spec"]["nodeName"] == gpus["spec"]["pool"]["name"] == "node-1"
    assert gpus["spec"]["devices"][1] == {
        "name": "gpu-1",
        "attributes": {
            "index": {"int": 1},
            "model": {"string": "A100"},
            "healthy": {"bool": True},
            "driverVersion": {"version": "1.2.3"},
        },
        "capacity": {"memory": {"value": "40Gi"}},
        "taints": [{"key": "slow", "effect": "NoSchedule"}],
    }
    of_nics = [slices[f"node-0-nic.example.com-{number}"]["spec"] for number in (0, 1)]
    assert [len(each["devices"]) for each in of_nics] == [128, 2]
    assert {each["pool"]["resourceSliceCount"] for each in of_nics} == {2}


@pytest.mark.parametrize(
    ("devices", "told"),
    [
        ({**GPUS, "count": 2000}, "shapes[0].devices[0].count: must be from 0 to 1024, got 2000"),
        (
            {**GPUS, "capacity": {"memory": "much"}},
            'shapes[0].devices[0].capacity[memory]: "much" is not a quantity',
        ),
        (
            {**GPUS, "name": "A_b"},
            "shapes[0].devices: ResourceSlice 'node-0-gpu.example.com-0'",
        ),
    ],
)
def test_devices_that_cannot_be_made(devices: dict[str, Any], told: str) -> None:
    with pytest.raises(ShapeError) as error:
        _made({"devices": [devices]})

    assert str(error.value).startswith(told)


def test_nodes_of_which_only_the_number_is_said_are_in_three_zones() -> None:
    cluster = HollowCluster()
    make_nodes(cluster.api, plain_nodes(4).shapes)

    labels = [each["metadata"]["labels"] for each in cluster.listed("nodes")]
    zones = [each["topology.kubernetes.io/zone"] for each in labels]
    assert zones == ["local-a", "local-b", "local-c", "local-a"]
    assert {each["topology.kubernetes.io/region"] for each in labels} == {"local"}
