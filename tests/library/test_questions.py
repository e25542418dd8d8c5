"""Questions to a cluster that is asked by name, and clusters that are made of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import moorage
from moorage.documents.errors import InputError
from tests.builders import node_manifest, pod_manifest
from tests.dumps.cloud import cloud_dump

_OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}


def make_cluster(*more: dict[str, Any]) -> moorage.ClusterSnapshot:
    return moorage.ClusterSnapshot(()).add(
        node_manifest("a", cpu=4), node_manifest("b", cpu=2), pod_manifest("runs", cpu=1, node="a"),
        *more,
    )  # fmt: skip


def test_copies_of_a_pod_of_the_cluster_are_placed() -> None:
    found = make_cluster().fit("default/runs", 100)

    assert (found.asked, found.placed) == (100, 5)


@pytest.mark.parametrize("method", ["explain", "fit", "place", "score_table"])
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("default/run", "pod default/run: not found among 1 pod; did you mean default/runs?"),
        ("", "pod : not found among 1 pod"),
        (node_manifest("n"), "Node: must be the name of a Pod or its manifest"),
        (7, "int: must be the name of a Pod or its manifest"),
    ],
    ids=["a name", "no name", "another kind", "no pod at all"],
)
def test_what_is_no_pod_is_named(method: str, given: Any, error: str) -> None:
    with pytest.raises(InputError) as raised:
        getattr(make_cluster(), method)(given)

    assert str(raised.value) == error


@pytest.mark.parametrize(
    "ask",
    [
        lambda cluster: cluster.explain("default/runs", node="c"),
        lambda cluster: cluster.drain("a", "c"),
    ],
    ids=["explain", "drain"],
)
def test_a_node_that_is_not_there_is_named(ask: Any) -> None:
    with pytest.raises(InputError, match="node c: there is no such node"):
        ask(make_cluster())


def test_all_pods_that_wait_are_explained_by_owner() -> None:
    owner = {"ownerReferences": [{**_OWNER, "controller": True}]}
    cluster = make_cluster(
        pod_manifest("alone", cpu=64),
        pod_manifest("fits", cpu=1),
        *(pod_manifest(f"web-{number}", cpu=4, metadata=owner) for number in range(3)),
        pod_manifest("foreign", cpu=1, spec={"schedulerName": "volcano"}),
    )
    web, alone = cluster.explain_all()

    assert (web.owner, len(web.pods)) == ("replicaset default/web", 3)
    assert web.pods[0] == web.explanation.pod == "default/web-0"
    assert "Insufficient cpu" in web.explanation.message
    assert (alone.owner, alone.pods) == ("pod default/alone", ("default/alone",))


def test_a_whole_dump_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "dump.yaml"
    path.write_text(yaml.safe_dump_all(cloud_dump()))
    cluster = moorage.read_cluster(path)
    pending = {each.pod.key for each in cluster.simulate().pending}

    found = cluster.explain_all()

    foreign = {pod.key for pod in cluster.pods if pod.spec.scheduler_name != "default-scheduler"}
    assert {key for each in found for key in each.pods} == pending - foreign
    assert len(foreign & pending) == 1
    assert all(each.explanation.rejections for each in found)


def test_nodes_are_added_like_one_or_by_a_manifest() -> None:
    cluster = make_cluster()
    wider = cluster.add_nodes("b", 2).add_nodes(node_manifest("big", cpu=64))

    assert [node.name for node in wider.nodes] == ["a", "b", "b-1", "b-2", "big-1"]
    assert wider.nodes[2].labels["kubernetes.io/hostname"] == "b-1"
    assert wider.fit("default/runs", 100).placed == 3 + 3 * 2 + 64
    assert len(cluster.nodes) == 2
    with pytest.raises(InputError, match="node c: not found among 2 nodes"):
        cluster.add_nodes("c")


def test_pods_of_a_drained_node_wait_and_go_elsewhere() -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }
    daemon = {"ownerReferences": [{**_OWNER, "kind": "DaemonSet", "controller": True}]}
    cluster = make_cluster(
        budget,
        pod_manifest("web", labels={"app": "web"}, node="a", status={"phase": "Running"}),
        pod_manifest("agent", node="a", metadata=daemon),
        pod_manifest("done", node="a", status={"phase": "Succeeded"}),
    )
    drained = cluster.drain("a")
    rows = {row["name"]: (row["node"], row["phase"]) for row in drained.pod_table()}

    assert rows == {
        "runs": ("", "Pending"),
        "web": ("", "Pending"),
        "agent": ("a", "Running"),
        "done": ("a", "Succeeded"),
    }
    assert drained.nodes[0].unschedulable
    assert {each.node for each in drained.simulate().placed} == {"b"}
    assert drained.notes[0] == (
        "the drain is forbidden: "
        "budget default/keep allows no disruption, and 1 of its pods has to go"
    )
    assert "1 pod" not in repr(cluster.drain())


def test_a_drain_frees_devices() -> None:
    """A claim that only the drained pod uses is not tied to the old node any more."""
    device_class = {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    slices = [
        {
            "kind": "ResourceSlice",
            "metadata": {"name": name},
            "spec": {
                "driver": "x.io",
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0"}],
            },
        }
        for name in ("a", "b")
    ]
    result = {"request": "gpu", "driver": "x.io", "pool": "a", "device": "gpu-0"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    claim = {
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "exactly": {
                            "deviceClassName": "gpu",
                            "allocationMode": "ExactCount",
                            "count": 1,
                        },
                    }
                ]
            }
        },
        "status": {
            "allocation": {
                "devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": [term]},
            },
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "default/p"}],
        },
    }
    user = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    cluster = make_cluster(
        device_class, *slices, claim, pod_manifest("p", node="a", cpu=1, spec=user)
    )

    assert cluster.place("default/p") == "a"
    assert cluster.drain("a").place("default/p") == "b"


@pytest.mark.parametrize("kind", ["ServiceMonitor", None])
def test_a_kind_that_is_not_read_is_named(kind: str | None) -> None:
    with pytest.raises(InputError, match=f"kind {kind}: is not read"):
        make_cluster({"kind": kind, "metadata": {"name": "m"}})
