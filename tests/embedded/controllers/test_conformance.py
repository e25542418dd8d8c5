"""What Kubernetes' own conformance tests want of the kinds that make pods, in virtual time.

Each test plays the scenario of some of them. What they want of one kind in more detail is in the
tests of that kind.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.api.request_options import WriteOptions
from moorage.embedded.kinds.subresources import scale_of, set_scale
from tests.embedded.controllers.playing import Json, Play, played, template, workload
from tests.embedded.serving import node, pod

RC = "replicationcontrollers"


def _owners(item: Json) -> list[tuple[str, str]]:
    found = item["metadata"].get("ownerReferences") or ()
    return [(each["kind"], each["name"]) for each in found]


def _names(items: list[Json]) -> list[str]:
    return [each["metadata"]["name"] for each in items]


@played
async def test_a_replication_controller_makes_replaces_and_removes_pods(cluster: Play) -> None:
    cluster.create(RC, "web", {"replicas": 2, "template": template()})
    await cluster.settle()
    cluster.run()
    await cluster.settle()

    status = cluster.get(RC, "web")["status"]
    assert [_owners(each) for each in cluster.pods()] == [[("ReplicationController", "web")]] * 2
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (2, 2, 2)
    cluster.delete("pods", cluster.pods()[0]["metadata"]["name"])
    await cluster.settle()
    assert len(cluster.pods()) == 2
    cluster.delete(RC, "web")
    await cluster.settle()
    assert cluster.pods() == []


@played
async def test_a_replication_controller_adopts_and_releases_pods(cluster: Play) -> None:
    cluster.create("pods", "orphan", pod("orphan")["spec"], metadata={"labels": {"app": "web"}})
    cluster.create(RC, "web", {"replicas": 1, "template": template()})
    await cluster.settle()
    (adopted,) = cluster.pods()
    assert (adopted["metadata"]["name"], _owners(adopted)) == (
        "orphan",
        [("ReplicationController", "web")],
    )

    adopted["metadata"]["labels"]["app"] = "other"
    cluster.update("pods", adopted)
    await cluster.settle()

    assert _owners(cluster.get("pods", "orphan")) == []
    assert len(cluster.pods()) == 2


@played
async def test_a_replication_controller_says_why_it_makes_no_pods(cluster: Play) -> None:
    spec = template()
    spec["spec"]["priorityClassName"] = "absent"
    cluster.create(RC, "web", {"replicas": 1, "template": spec})
    await cluster.settle()

    (condition,) = cluster.get(RC, "web")["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
    cluster.change(RC, "web", replicas=0)
    await cluster.settle()
    assert "conditions" not in cluster.get(RC, "web")["status"]


@pytest.mark.parametrize(
    "resource", [RC, "replicasets.apps", "deployments.apps", "statefulsets.apps"]
)
@played
async def test_the_scale_of_a_workload_can_be_read_and_set(cluster: Play, resource: str) -> None:
    spec = {"template": template()} if resource == RC else workload()
    cluster.create(resource, "web", {**spec, "replicas": 1})
    await cluster.settle()
    cluster.run()
    await cluster.settle()
    kind, item = cluster.api.kinds[resource], cluster.get(resource, "web")
    scale = scale_of(kind, item)
    assert (scale["spec"], scale["status"]["replicas"]) == ({"replicas": 1}, 1)

    scale["spec"]["replicas"] = 2
    set_scale(cluster.api, kind, "default", "web", scale, WriteOptions())
    await cluster.settle()
    cluster.run()
    await cluster.settle()

    assert scale_of(kind, cluster.get(resource, "web"))["status"]["replicas"] == 2
    assert len(cluster.pods()) == 2


WORKLOADS: list[tuple[str, Json]] = [
    (RC, {"replicas": 1, "template": template()}),
    ("replicasets.apps", workload(replicas=1)),
    ("deployments.apps", workload(replicas=1)),
    ("daemonsets.apps", workload()),
    ("jobs.batch", {"template": {"spec": {**template()["spec"], "restartPolicy": "Never"}}}),
    ("poddisruptionbudgets.policy", {"minAvailable": 1, "selector": {}}),
]


@pytest.mark.parametrize(("resource", "spec"), WORKLOADS, ids=[name for name, _ in WORKLOADS])
@played
async def test_a_condition_that_others_write_stays(
    cluster: Play, resource: str, spec: Json
) -> None:
    cluster.create("nodes", "n", status=node("n")["status"])
    cluster.create(resource, "web", spec)
    await cluster.settle()
    item = cluster.get(resource, "web")
    condition: dict[str, Any] = {
        "type": "StatusUpdate",
        "status": "True",
        "reason": "Test",
        "message": "Set by a test",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    kept = (item.get("status") or {}).get("conditions") or []
    cluster.set_status(resource, item, conditions=[*kept, condition])
    await cluster.settle()
    cluster.run()
    await cluster.settle()

    found = cluster.get(resource, "web")["status"]["conditions"]
    assert [each for each in found if each["type"] == "StatusUpdate"] == [condition]


@played
async def test_a_stateful_set_halts_while_a_pod_is_not_ready(cluster: Play) -> None:
    cluster.create("statefulsets.apps", "web", workload(replicas=3, serviceName="web"))
    await cluster.settle()
    assert cluster.names("pods") == ["web-0"]
    cluster.run(ready=False)
    await cluster.settle()
    assert cluster.names("pods") == ["web-0"]
    for expected in (["web-0", "web-1"], ["web-0", "web-1", "web-2"]):
        cluster.run(cluster.pods())
        await cluster.settle()
        assert cluster.names("pods") == expected
    for each in cluster.pods():
        cluster.run([cluster.bind(each, "n")], ready=False)
    cluster.change("statefulsets.apps", "web", replicas=0)
    await cluster.settle()
    assert _names(cluster.pods()) == ["web-0", "web-1", "web-2"]

    for left in (["web-0", "web-1"], ["web-0"], []):
        cluster.run(cluster.pods())
        await cluster.settle()
        assert _names(cluster.pods()) == left
        cluster.sweep()
        cluster.run(cluster.pods(), ready=False)
        await cluster.settle()


@played
async def test_a_stateful_set_makes_evicted_pods_again(cluster: Play) -> None:
    cluster.create("statefulsets.apps", "web", workload(replicas=1, serviceName="web"))
    await cluster.settle()
    before = cluster.get("pods", "web-0")
    cluster.end([before], "Failed")
    await cluster.settle()

    after = cluster.get("pods", "web-0")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["status"]["phase"] == "Pending"


@played
async def test_a_daemon_set_goes_back_without_restarting_pods_that_fit(cluster: Play) -> None:
    for name in ("a", "b"):
        cluster.create("nodes", name, status=node(name)["status"])
    cluster.create("daemonsets.apps", "web", workload())
    await cluster.settle()
    for each, name in zip(cluster.pods(), ("a", "b"), strict=True):
        cluster.bind(each, name)
    cluster.run()
    await cluster.settle()
    before = {each["metadata"]["uid"] for each in cluster.pods()}
    broken = template()
    broken["spec"]["containers"][0]["image"] = "registry.example/absent:1"
    cluster.change("daemonsets.apps", "web", template=broken)
    await cluster.settle()
    cluster.sweep()
    await cluster.settle()
    kept = {each["metadata"]["uid"] for each in cluster.pods()} & before
    assert len(kept) == 1

    cluster.change("daemonsets.apps", "web", template=template())
    await cluster.settle()
    cluster.sweep()
    await cluster.settle()

    assert kept <= {each["metadata"]["uid"] for each in cluster.pods()}
    assert len(cluster.objects("controllerrevisions.apps")) == 2
