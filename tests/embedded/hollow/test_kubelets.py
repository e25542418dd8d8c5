"""The lives of pods on hollow nodes, in time that the test tells."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.api.request_options import WriteOptions
from moorage.embedded.hollow.pod_life import EXIT_CODE, MISSING_IMAGES, POLICIES, RUN_SECONDS
from tests.embedded.hollow.cluster import HollowCluster, conditions

_EXCLUSIVE = "DaemonsetAndStaticPods"


def test_a_pod_waits_starts_runs_and_succeeds() -> None:
    cluster = HollowCluster(start_seconds=2, run_seconds=5)
    cluster.node()
    cluster.pod("a", restartPolicy="Never")

    assert cluster.phase("a") == "Pending"
    cluster.wait(1.9)
    assert cluster.phase("a") == "Pending"
    cluster.wait(0.2)
    running = cluster.show("a")
    assert running["status"]["phase"] == "Running"
    assert running["status"]["containerStatuses"][0]["state"]["running"]
    assert conditions(running)["Ready"] == "True"
    assert running["status"]["podIP"]
    cluster.wait(4.8)
    assert cluster.phase("a") == "Running"
    cluster.wait(0.2)
    done = cluster.show("a")
    assert done["status"]["phase"] == "Succeeded"
    assert conditions(done)["Ready"] == "False"
    assert done["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


@pytest.mark.parametrize(
    ("policy", "annotations", "deadline", "ends"),
    [
        ("Always", {}, None, ("Running", "")),
        ("Never", {}, None, ("Succeeded", "")),
        ("OnFailure", {}, None, ("Succeeded", "")),
        ("Never", {RUN_SECONDS: "50"}, None, ("Running", "")),
        ("Never", {RUN_SECONDS: "nonsense"}, None, ("Succeeded", "")),
        ("Never", {EXIT_CODE: "3"}, None, ("Failed", "")),
        ("OnFailure", {EXIT_CODE: "3"}, None, ("Running", "")),
        ("Always", {EXIT_CODE: "3"}, None, ("Running", "")),
        ("OnFailure", {EXIT_CODE: "3"}, 15, ("Failed", "DeadlineExceeded")),
        ("Always", {}, 4, ("Failed", "DeadlineExceeded")),
        ("Never", {}, 4, ("Failed", "DeadlineExceeded")),
        ("Never", {}, 400, ("Succeeded", "")),
    ],
)
def test_how_pods_end(
    policy: str, annotations: dict[str, str], deadline: int | None, ends: tuple[str, str]
) -> None:
    cluster = HollowCluster(run_seconds=10)
    cluster.node()
    more: dict[str, Any] = {} if deadline is None else {"activeDeadlineSeconds": deadline}
    cluster.pod("a", restartPolicy=policy, metadata={"annotations": annotations}, **more)

    cluster.wait(20)

    status = cluster.show("a")["status"]
    assert (status["phase"], status.get("reason", "")) == ends


def test_init_containers_are_done_and_sidecars_run() -> None:
    cluster = HollowCluster()
    cluster.node()
    first = {"name": "first", "image": "i"}
    sidecar = {"name": "sidecar", "image": "s", "restartPolicy": "Always"}
    cluster.pod("a", initContainers=[first, sidecar])

    started = cluster.show("a")["status"]["initContainerStatuses"]

    assert [next(iter(each["state"])) for each in started] == ["terminated", "running"]


@pytest.mark.parametrize(
    ("stop_seconds", "own", "asked", "stays"),
    [
        pytest.param(1, 30, None, 1, id="as long as it takes to stop"),
        pytest.param(60, 30, None, 30, id="its grace period at most"),
        pytest.param(60, 30, 5, 5, id="or what was asked for"),
        pytest.param(60, 30, 90, 60, id="which may be more"),
    ],
)
def test_grace(stop_seconds: float, own: int, asked: int | None, stays: float) -> None:
    cluster = HollowCluster(stop_seconds=stop_seconds)
    cluster.node()
    cluster.pod("a", terminationGracePeriodSeconds=own)

    cluster.delete("a", asked)
    cluster.wait(stays - 0.1)
    assert cluster.phase("a") == "Running"
    cluster.wait(0.2)
    assert cluster.phase("a") == ""


def test_deleting_again_can_only_make_it_faster() -> None:
    cluster = HollowCluster(stop_seconds=60)
    cluster.node()
    cluster.pod("a")
    cluster.delete("a", 30)
    cluster.wait(10)

    cluster.delete("a", 5)
    cluster.wait(6)

    assert cluster.phase("a") == ""


def test_force_deletion_frees_the_node_at_once() -> None:
    cluster = HollowCluster()
    cluster.node()
    cluster.pod("a", cpu="4")

    cluster.delete("a", 0)
    cluster.pod("b", cpu="4")

    assert (cluster.phase("a"), cluster.phase("b")) == ("", "Running")


def test_a_pod_counts_until_it_has_stopped() -> None:
    cluster = HollowCluster(stop_seconds=10)
    cluster.node()
    cluster.pod("leaving", cpu="4")
    cluster.delete("leaving")

    cluster.pod("early", cpu="4")
    cluster.wait(11)
    cluster.pod("late", cpu="4")

    assert cluster.show("early")["status"]["reason"] == "OutOfcpu"
    assert cluster.phase("late") == "Running"


def test_a_pod_with_finalizers_has_ended_but_stays() -> None:
    cluster = HollowCluster()
    cluster.node()
    cluster.pod("a", metadata={"finalizers": ["example.com/tracking"]})

    cluster.delete("a")
    cluster.wait(5)

    status = cluster.show("a")["status"]
    assert status["phase"] == "Failed"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143


def test_a_pod_that_is_deleted_before_it_starts() -> None:
    cluster = HollowCluster(start_seconds=100)
    cluster.node()
    cluster.pod("a")

    cluster.delete("a")
    cluster.wait(2)

    assert cluster.phase("a") == ""


def test_what_was_bound_around_the_scheduler_is_rejected() -> None:
    cluster = HollowCluster()
    cluster.node()
    cluster.pod("a", cpu="3")
    cluster.pod("b", cpu="2")

    status = cluster.show("b")["status"]

    assert status["phase"] == "Failed"
    assert status["reason"] == "OutOfcpu"
    assert status["message"].startswith("Pod was rejected: Node didn't have enough resource: cpu")
    (event,) = cluster.listed("events")
    assert (event["reason"], event["involvedObject"]["name"]) == ("OutOfcpu", "b")
    # It takes no room, and stays rejected.
    cluster.wait(100)
    cluster.pod("c", cpu="1")
    assert (cluster.phase("b"), cluster.phase("c")) == ("Failed", "Running")


@pytest.mark.parametrize(
    ("cluster_gate", "node_gate", "phase"),
    [
        (True, None, "Failed"),
        (True, "CoexistPolicy=false", "Running"),
        (True, "Other=false", "Failed"),
        (False, None, "Running"),
        (False, "Other=true,CoexistPolicy=true", "Failed"),
    ],
)
def test_a_node_says_which_policies_its_kubelet_knows(
    cluster_gate: bool, node_gate: str | None, phase: str
) -> None:
    cluster = HollowCluster(unknown=() if cluster_gate else ("CoexistPolicy",))
    cluster.node(annotations={} if node_gate is None else {POLICIES: node_gate})
    cluster.pod("other")

    cluster.pod("exclusive", coexistPolicy=_EXCLUSIVE)

    assert cluster.phase("other") == "Running"
    assert cluster.phase("exclusive") == phase


def test_pods_that_come_before_their_node_wait_for_it() -> None:
    cluster = HollowCluster()
    cluster.pod("a")
    cluster.wait(10)
    assert cluster.phase("a") == "Pending"

    cluster.node()

    assert cluster.phase("a") == "Running"


def test_without_its_node_a_pod_stays_as_it_is() -> None:
    cluster = HollowCluster()
    cluster.node()
    cluster.pod("a", restartPolicy="Never")
    nodes = cluster.api.kinds["nodes"]
    cluster.api.remove(nodes, cluster.api.get(nodes, "", "n"))

    cluster.wait(100)

    assert cluster.phase("a") == "Running"


def test_a_pod_of_the_same_name_is_another() -> None:
    cluster = HollowCluster(run_seconds=10)
    cluster.node()
    cluster.pod("a", restartPolicy="Never")
    cluster.wait(8)
    cluster.delete("a", 0)
    cluster.pod("a", restartPolicy="Never")

    cluster.wait(8)
    assert cluster.phase("a") == "Running"
    cluster.wait(3)
    assert cluster.phase("a") == "Succeeded"


def test_kubelets_that_start_anew_go_on_where_others_left_off() -> None:
    before = HollowCluster(run_seconds=10)
    before.node()
    before.pod("a", cpu="3", restartPolicy="Never")
    before.wait(4)

    after = HollowCluster(before.api.store, before.now, run_seconds=10)
    after.pod("b", cpu="3")
    after.wait(5)
    assert (after.phase("a"), after.phase("b")) == ("Running", "Failed")
    after.wait(2)
    assert after.phase("a") == "Succeeded"


def test_a_pod_that_another_has_ended_takes_no_room() -> None:
    cluster = HollowCluster()
    cluster.node()
    cluster.pod("a", cpu="4")
    pod = cluster.show("a")
    pod["status"]["phase"] = "Failed"
    cluster.api.update_status(cluster.api.kinds["pods"], "default", "a", pod, WriteOptions())

    cluster.pod("b", cpu="4")

    assert cluster.phase("b") == "Running"


def test_a_pod_that_was_replaced_while_nobody_looked() -> None:
    cluster = HollowCluster(start_seconds=100)
    cluster.node()
    cluster.pod("a")
    cluster.wait(50)
    pods = cluster.api.kinds["pods"]
    old = cluster.api.get(pods, "default", "a")
    anew = old.object
    anew["metadata"]["uid"] = "another"
    entry = cluster.api.store.put("pods", old.key, anew)

    cluster.kubelets.take_pod(entry, gone=False)
    cluster.wait(60)

    # It has its own time to start.
    assert cluster.phase("a") == "Pending"
    cluster.wait(50)
    assert cluster.phase("a") == "Running"


def _set_deadline(cluster: HollowCluster, seconds: int) -> None:
    item = cluster.show("a")
    item["spec"]["activeDeadlineSeconds"] = seconds
    cluster.api.update(cluster.api.kinds["pods"], "default", "a", item)
    cluster.settle()


@pytest.mark.parametrize(
    "annotations", [{}, {EXIT_CODE: "1", RUN_SECONDS: "2"}], ids=["runs", "crashes"]
)
def test_a_deadline_may_be_set_and_shortened_later(annotations: dict[str, str]) -> None:
    cluster = HollowCluster()
    cluster.node()
    cluster.pod("a", metadata={"annotations": annotations})
    cluster.wait(5)

    _set_deadline(cluster, 100)
    cluster.wait(4)
    _set_deadline(cluster, 10)
    assert cluster.phase("a") == "Running"
    cluster.wait(1)

    assert cluster.show("a")["status"]["reason"] == "DeadlineExceeded"


@pytest.mark.parametrize(
    ("sleep", "grace", "takes"), [(8, 30, 9.0), (8, 5, 5.0), (0, 30, 1.0)], ids=str
)
def test_a_container_may_sleep_before_it_stops(sleep: int, grace: int, takes: float) -> None:
    cluster = HollowCluster(stop_seconds=1)
    cluster.node()
    hook = {"preStop": {"sleep": {"seconds": sleep}}}
    cluster.pod("a", containers=[{"name": "main", "image": "a", "lifecycle": hook}])

    cluster.delete("a", grace)
    cluster.wait(takes - 0.1)
    assert cluster.phase("a") == "Running"
    cluster.wait(0.2)

    assert cluster.phase("a") == ""


@pytest.mark.parametrize("said_by", ["pod", "node"])
def test_an_image_that_does_not_exist_holds_a_pod_until_it_does(said_by: str) -> None:
    cluster = HollowCluster()
    note = {MISSING_IMAGES: "other:1, app:404"}
    cluster.node(annotations=note if said_by == "node" else None)
    containers = [{"name": "main", "image": "app:404"}, {"name": "beside", "image": "app:1"}]
    cluster.pod(
        "a",
        containers=containers,
        metadata={"annotations": note} if said_by == "pod" else None,
    )
    cluster.wait(60)

    status = cluster.show("a")["status"]
    assert status["phase"] == "Pending"
    main, beside = status["containerStatuses"]
    assert main["state"]["waiting"]["reason"] == "ImagePullBackOff"
    assert "running" in beside["state"]
    assert conditions(cluster.show("a"))["Ready"] == "False"
    assert [each["reason"] for each in cluster.listed("events")] == ["Failed"]

    if said_by == "pod":
        item = cluster.show("a")
        item["spec"]["containers"][0]["image"] = "app:1"
        cluster.api.update(cluster.api.kinds["pods"], "default", "a", item)
    else:
        (node,) = cluster.listed("nodes")
        del node["metadata"]["annotations"]
        cluster.api.update(cluster.api.kinds["nodes"], "", "n", node)
    cluster.settle()
    assert cluster.phase("a") == "Running"


def test_all_images_may_be_missing_and_such_a_pod_can_go() -> None:
    cluster = HollowCluster()
    cluster.node()
    cluster.pod(
        "a",
        metadata={"annotations": {MISSING_IMAGES: "*"}},
        initContainers=[{"name": "first", "image": "i"}],
    )
    status = cluster.show("a")["status"]
    reasons = [
        each["state"]["waiting"]["reason"]
        for each in (*status["initContainerStatuses"], *status["containerStatuses"])
    ]
    assert reasons == ["ImagePullBackOff", "PodInitializing"]
    cluster.delete("a")
    cluster.wait(2)

    assert cluster.phase("a") == ""
