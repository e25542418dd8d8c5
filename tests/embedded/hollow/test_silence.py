"""Nodes whose kubelets are stopped, and start again."""

from __future__ import annotations

from typing import Any

from moorage.embedded.api.request_options import WriteOptions
from moorage.embedded.hollow.pod_life import KUBELET
from tests.embedded.hollow.cluster import HollowCluster, conditions


def _stop_kubelet(cluster: HollowCluster, stopped: bool) -> None:
    def change(node: dict[str, Any]) -> dict[str, Any]:
        node["metadata"]["annotations"] = {KUBELET: "stopped"} if stopped else {}
        return node

    cluster.api.edit(cluster.api.kinds["nodes"], "", "n", change)
    cluster.settle()


def test_on_a_stopped_node_nothing_begins_ends_or_goes() -> None:
    cluster = HollowCluster(run_seconds=10)
    cluster.node()
    cluster.pod("runs", restartPolicy="Never")
    cluster.pod("deleted")
    _stop_kubelet(cluster, True)
    cluster.pod("late")
    cluster.delete("deleted")
    cluster.wait(100)
    assert [cluster.phase(name) for name in ("runs", "deleted", "late")] == [
        "Running",
        "Running",
        "Pending",
    ]

    _stop_kubelet(cluster, False)
    cluster.wait(2)
    # What ran has run on meanwhile, to its end.
    assert [cluster.phase(name) for name in ("runs", "deleted", "late")] == [
        "Succeeded",
        "",
        "Running",
    ]


def _give_up(cluster: HollowCluster, name: str) -> None:
    pod = cluster.show(name)
    for each in pod["status"]["conditions"]:
        if each["type"] == "Ready":
            each["status"] = "False"
    cluster.api.update_status(cluster.api.kinds["pods"], "default", name, pod, WriteOptions())


def test_pods_of_a_node_that_comes_back_are_ready_again() -> None:
    cluster = HollowCluster()
    cluster.node()
    cluster.pod("a")
    _stop_kubelet(cluster, True)
    _give_up(cluster, "a")

    _stop_kubelet(cluster, False)

    assert conditions(cluster.show("a"))["Ready"] == "True"


def test_pods_of_a_node_that_was_given_up_too_early_are_ready_again() -> None:
    cluster = HollowCluster()
    cluster.node()
    cluster.pod("a")
    _give_up(cluster, "a")
    cluster.settle()
    assert conditions(cluster.show("a"))["Ready"] == "False"
    node = cluster.listed("nodes")[0]
    for each in node["status"]["conditions"]:
        each["status"] = "Unknown"
    cluster.api.edit(cluster.api.kinds["nodes"], "", "n", lambda _: node)
    cluster.settle()

    assert conditions(cluster.show("a"))["Ready"] == "True"
