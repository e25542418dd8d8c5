"""Containers that exit and are started again."""

from __future__ import annotations

import pytest

from moorage.embedded.hollow.pod_life import EXIT_CODE, RUN_SECONDS
from tests.embedded.hollow.cluster import HollowCluster, conditions


def _container(cluster: HollowCluster) -> tuple[str, int]:
    """The state of a container, and how often it was restarted."""
    (each,) = cluster.show("a")["status"]["containerStatuses"]
    (state,) = each["state"]
    return state, each["restartCount"]


@pytest.mark.parametrize(
    ("policy", "annotations"),
    [
        ("OnFailure", {EXIT_CODE: "1", RUN_SECONDS: "5"}),
        ("Always", {EXIT_CODE: "1", RUN_SECONDS: "5"}),
        ("Always", {RUN_SECONDS: "5"}),
    ],
)
def test_containers_are_started_again_later_each_time(
    policy: str, annotations: dict[str, str]
) -> None:
    cluster = HollowCluster()
    cluster.node()
    cluster.pod("a", restartPolicy=policy, metadata={"annotations": annotations})
    cluster.wait(4)
    assert _container(cluster) == ("running", 0)
    cluster.wait(2)
    assert _container(cluster) == ("running", 1)
    for pause, restarts in ((10, 2), (20, 3), (40, 4)):
        cluster.wait(5)
        assert _container(cluster) == ("waiting", restarts - 1)
        assert conditions(cluster.show("a"))["Ready"] == "False"
        cluster.wait(pause - 2)
        assert _container(cluster) == ("waiting", restarts - 1)
        cluster.wait(2)
        assert _container(cluster) == ("running", restarts)
        assert conditions(cluster.show("a"))["Ready"] == "True"
    (status,) = cluster.show("a")["status"]["containerStatuses"]
    code = int(annotations.get(EXIT_CODE, "0"))
    assert status["lastState"]["terminated"]["exitCode"] == code
    assert cluster.phase("a") == "Running"


def test_a_pod_that_waits_to_be_restarted_can_go() -> None:
    cluster = HollowCluster()
    cluster.node()
    notes = {EXIT_CODE: "1", RUN_SECONDS: "5"}
    cluster.pod("a", restartPolicy="Always", metadata={"annotations": notes})
    cluster.wait(12)
    assert _container(cluster)[0] == "waiting"

    cluster.delete("a")
    cluster.wait(2)

    assert cluster.phase("a") == ""
