"""Nodes are ready, and renew their leases without flooding anybody."""

from __future__ import annotations

from datetime import timedelta

import pytest

from moorage.embedded.hollow.hosts import Heartbeats, ready_status
from moorage.embedded.hollow.pod_life import KUBELET, HollowSettings
from moorage.embedded.store.object_store import Json
from tests.embedded.hollow.cluster import HollowCluster

_LEASES = "leases.coordination.k8s.io"


def _set_ready(cluster: HollowCluster, name: str, status: str) -> None:
    def change(node: Json) -> Json:
        for each in node["status"]["conditions"]:
            if each["type"] == "Ready":
                each["status"] = status
        return node

    cluster.api.edit(cluster.api.kinds["nodes"], "", name, change)
    cluster.settle()


def _annotate(cluster: HollowCluster, name: str, annotations: Json) -> None:
    def change(node: Json) -> Json:
        node["metadata"]["annotations"] = annotations
        return node

    cluster.api.edit(cluster.api.kinds["nodes"], "", name, change)
    cluster.settle()


def _renewed(cluster: HollowCluster) -> list[str]:
    return [each["spec"]["renewTime"] for each in cluster.listed(_LEASES)]


def test_a_new_node_is_ready_and_has_a_lease() -> None:
    cluster = HollowCluster()

    cluster.node()

    (node,), (lease,) = cluster.listed("nodes"), cluster.listed(_LEASES)
    assert ready_status(node) == "True"
    assert lease["metadata"]["namespace"] == "kube-node-lease"
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    assert lease["spec"]["leaseDurationSeconds"] == 40


@pytest.mark.parametrize(("said", "is_now"), [("Unknown", "True"), ("False", "False")])
def test_what_others_say_of_a_node(said: str, is_now: str) -> None:
    cluster = HollowCluster()
    cluster.node()

    _set_ready(cluster, "n", said)

    assert ready_status(cluster.listed("nodes")[0]) == is_now


def test_leases_are_renewed_each_in_time() -> None:
    cluster = HollowCluster()
    for name in ("a", "b", "c"):
        cluster.node(name)
    first = _renewed(cluster)

    for _ in range(3):
        before = _renewed(cluster)
        cluster.wait(11)
        assert all(now > then for now, then in zip(_renewed(cluster), before, strict=True))
    assert all(now > then for now, then in zip(_renewed(cluster), first, strict=True))


def test_a_lease_that_somebody_deleted_comes_back() -> None:
    cluster = HollowCluster()
    cluster.node()
    kind = cluster.api.kinds[_LEASES]
    cluster.api.remove(kind, cluster.api.get(kind, "kube-node-lease", "n"))

    cluster.wait(11)

    assert len(cluster.listed(_LEASES)) == 1


@pytest.mark.parametrize(
    ("nodes", "interval"), [(1, 10.0), (1000, 10.0), (5000, 50.0)], ids=["one", "many", "too many"]
)
def test_many_nodes_renew_more_rarely(nodes: int, interval: float) -> None:
    beats = Heartbeats(HollowSettings(lease_seconds=10, most_renewals=100), 0.0)
    for number in range(nodes):
        beats.add(str(number))

    now, renewals, most = 0.0, list[str](), 0
    while (due := beats.next) is not None and due <= interval:
        now = due
        turns = beats.due(now)
        most = max(most, len(turns))
        renewals += turns

    assert beats.interval == interval
    # Everybody once, give or take what is left over at the end.
    assert len(set(renewals)) == len(renewals)
    assert nodes - 100 <= len(renewals) <= nodes
    assert most <= 51


def test_a_clock_that_was_set_back_owes_nothing() -> None:
    beats = Heartbeats(HollowSettings(lease_seconds=10), 100.0)
    for name in "ab":
        beats.add(name)
    assert beats.due(104.0) == []

    # What was owed before is still owed, no less and no more.
    assert beats.due(50.0) == []
    assert beats.due(50.9) == []
    assert beats.due(51.1) == ["a"]


def test_nobody_is_owed_more_than_one_renewal() -> None:
    beats = Heartbeats(HollowSettings(lease_seconds=10), 0.0)
    for name in "ab":
        beats.add(name)

    # Time enough for 20,000.7 renewals: nothing is left of them.
    assert beats.due(100_003.5) == ["a", "b"]
    assert beats.due(100_005.5) == []
    assert beats.due(100_008.6) == ["a"]


def test_a_node_whose_kubelet_is_stopped_falls_silent() -> None:
    cluster = HollowCluster()
    cluster.node()
    _annotate(cluster, "n", {KUBELET: "stopped"})
    (before,) = _renewed(cluster)
    cluster.wait(100)

    # Others say of it what they like.
    _set_ready(cluster, "n", "Unknown")
    assert _renewed(cluster) == [before]
    assert ready_status(cluster.listed("nodes")[0]) == "Unknown"

    _annotate(cluster, "n", {})
    (after,) = _renewed(cluster)
    assert after > before
    assert ready_status(cluster.listed("nodes")[0]) == "True"


def test_a_node_that_was_stopped_from_the_start_has_a_lease_that_runs_out() -> None:
    cluster = HollowCluster()
    cluster.node(annotations={KUBELET: "stopped"})
    before = _renewed(cluster)
    cluster.wait(100)

    assert len(before) == 1
    assert _renewed(cluster) == before


def test_kubelets_that_start_anew_renew_the_leases_that_they_find() -> None:
    before = HollowCluster()
    before.node()
    (old,) = _renewed(before)

    after = HollowCluster(before.api.store, before.now + timedelta(hours=1))

    (new,) = _renewed(after)
    assert new > old


def _set_capacity(cluster: HollowCluster, **capacity: str | None) -> None:
    def change(node: Json) -> Json:
        amounts = {**node["status"]["capacity"], **capacity}
        node["status"]["capacity"] = {key: each for key, each in amounts.items() if each}
        return node

    cluster.api.edit(cluster.api.kinds["nodes"], "", "n", change)
    cluster.settle()


def _allocatable(cluster: HollowCluster) -> Json:
    (node,) = cluster.listed("nodes")
    return {key: each for key, each in node["status"]["allocatable"].items() if "/" in key}


def test_extended_resources_of_the_capacity_become_allocatable() -> None:
    cluster = HollowCluster()
    cluster.node()

    _set_capacity(cluster, **{"example.com/gpu": "4", "cpu": "9"})
    assert _allocatable(cluster) == {"example.com/gpu": "4"}
    # What a kubelet counts itself stays.
    assert cluster.listed("nodes")[0]["status"]["allocatable"]["cpu"] == "4"
    # Pods are admitted by the new amount.
    asks = {"name": "main", "image": "a", "resources": {"limits": {"example.com/gpu": "3"}}}
    cluster.pod("a", containers=[asks])
    cluster.pod("b", containers=[asks])
    assert (cluster.phase("a"), cluster.phase("b")) == ("Running", "Failed")

    _set_capacity(cluster, **{"example.com/gpu": "2"})
    assert _allocatable(cluster) == {"example.com/gpu": "2"}
    _set_capacity(cluster, **{"example.com/gpu": None})
    assert _allocatable(cluster) == {}


def test_a_node_may_say_that_less_is_allocatable() -> None:
    cluster = HollowCluster()
    status = {
        "capacity": {"cpu": "4", "pods": "9", "example.com/gpu": "8"},
        "allocatable": {"cpu": "4", "pods": "9", "example.com/gpu": "6"},
    }
    cluster.api.create(
        cluster.api.kinds["nodes"], "", {"metadata": {"name": "n"}, "status": status}
    )
    cluster.settle()

    assert _allocatable(cluster) == {"example.com/gpu": "6"}
