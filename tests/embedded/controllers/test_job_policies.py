"""What failures and successes of single pods mean for their job."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.controllers.playing import Json, Play, played
from tests.embedded.controllers.test_jobs import active, ended, job, status

_LABEL = "batch.kubernetes.io/job-completion-index"
_TIMES = "batch.kubernetes.io/job-index-failure-count"


def exits(operator: str, *codes: int, **more: Any) -> Json:
    return {"onExitCodes": {"operator": operator, "values": list(codes), **more}}


def disrupted(kind: str = "DisruptionTarget") -> Json:
    return {"onPodConditions": [{"type": kind, "status": "True"}]}


def rules(*pairs: tuple[str, Json]) -> Json:
    return {"rules": [{"action": action, **what} for action, what in pairs]}


def fail(cluster: Play, pod: Json, code: int = 1, *conditions: str) -> None:
    """A pod ends with an exit code."""
    ended_with = {"name": "main", "state": {"terminated": {"exitCode": code}}}
    told = [{"type": each, "status": "True"} for each in conditions]
    cluster.set_status("pods", pod, phase="Failed", containerStatuses=[ended_with], conditions=told)


def by_index(cluster: Play) -> dict[str, Json]:
    return {each["metadata"]["labels"][_LABEL]: each for each in active(cluster)}


@pytest.mark.parametrize(
    ("policy", "failed", "ends"),
    [
        pytest.param(rules(("FailJob", exits("In", 42))), 1, "PodFailurePolicy", id="a code"),
        pytest.param(rules(("FailJob", exits("In", 41))), 1, "", id="another code"),
        pytest.param(rules(("FailJob", exits("NotIn", 41))), 1, "PodFailurePolicy", id="not in"),
        pytest.param(rules(("Ignore", exits("In", 42))), 0, "", id="ignored"),
        pytest.param(rules(("Count", exits("In", 42))), 1, "", id="counted"),
        pytest.param(rules(("FailJob", exits("In", 42, containerName="x"))), 1, "", id="other"),
        pytest.param(
            rules(("FailJob", exits("In", 42, containerName="main"))),
            1,
            "PodFailurePolicy",
            id="this container",
        ),
        pytest.param(rules(("Ignore", disrupted())), 0, "", id="a condition"),
        pytest.param(rules(("Ignore", disrupted("Other"))), 1, "", id="another condition"),
        pytest.param(
            rules(("Ignore", disrupted()), ("FailJob", exits("In", 42))), 0, "", id="the first"
        ),
    ],
)
@played
async def test_failure_policies(cluster: Play, policy: Json, failed: int, ends: str) -> None:
    cluster.create("jobs.batch", "j", job(podFailurePolicy=policy))
    await cluster.settle()
    (pod,) = cluster.pods()
    fail(cluster, pod, 42, "DisruptionTarget")
    await cluster.settle()

    assert status(cluster).get("failed", 0) == failed
    assert ended(cluster).get("Failed", "") == ends
    assert bool(active(cluster)) is False
    if not ends:
        await cluster.wait(11)
        assert len(active(cluster)) == 1


@played
async def test_the_rule_that_failed_a_job_is_told(cluster: Play) -> None:
    policy = rules(("FailJob", exits("In", 42)))
    cluster.create("jobs.batch", "j", job(podFailurePolicy=policy))
    await cluster.settle()
    (pod,) = cluster.pods()
    fail(cluster, pod, 42)
    await cluster.settle()

    name = pod["metadata"]["name"]
    expected = (
        f"Container main for pod default/{name} failed with exit code 42 "
        "matching FailJob rule at index 0"
    )
    assert {each["message"] for each in status(cluster)["conditions"]} == {expected}
    told = {each["reason"]: each["message"] for each in cluster.objects("events")}
    assert told["PodFailurePolicy"] == expected


@played
async def test_ignored_failures_stay_ignored_when_their_pods_are_gone(cluster: Play) -> None:
    policy = rules(("Ignore", exits("In", 42)))
    cluster.create("jobs.batch", "j", job(podFailurePolicy=policy, backoffLimit=0))
    await cluster.settle()
    (pod,) = cluster.pods()
    fail(cluster, pod, 42)
    await cluster.settle()
    cluster.delete("pods", pod["metadata"]["name"], grace=0)
    await cluster.wait(11)

    assert "failed" not in status(cluster)
    assert len(active(cluster)) == 1


@pytest.mark.parametrize(("replacement", "at_once"), [("TerminatingOrFailed", 1), ("Failed", 0)])
@played
async def test_when_pods_that_are_deleted_are_replaced(
    cluster: Play, replacement: str, at_once: int
) -> None:
    spec = job(completions=1, podReplacementPolicy=replacement, completionMode="Indexed")
    cluster.create("jobs.batch", "j", spec)
    await cluster.settle()
    (pod,) = cluster.pods()
    cluster.run([cluster.bind(pod, "n")])
    cluster.delete("pods", pod["metadata"]["name"])
    await cluster.settle()
    assert len(active(cluster)) == at_once
    assert status(cluster)["terminating"] == 1

    cluster.sweep()
    await cluster.settle()
    assert len(active(cluster)) == 1


@played
async def test_a_job_has_ended_once_its_pods_are_gone(cluster: Play) -> None:
    cluster.create("jobs.batch", "j", job(activeDeadlineSeconds=5))
    await cluster.settle()
    (pod,) = cluster.pods()
    cluster.run([cluster.bind(pod, "n")])
    await cluster.wait(6)
    assert ended(cluster) == {"FailureTarget": "DeadlineExceeded"}
    assert (status(cluster)["failed"], status(cluster)["terminating"]) == (1, 1)

    cluster.sweep()
    await cluster.settle()
    assert ended(cluster)["Failed"] == "DeadlineExceeded"
    assert (status(cluster)["failed"], status(cluster)["terminating"]) == (1, 0)


@played
async def test_each_index_has_its_own_failures(cluster: Play) -> None:
    spec = job(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1)
    cluster.create("jobs.batch", "j", spec)
    await cluster.settle()
    fail(cluster, by_index(cluster)["0"])
    await cluster.settle()
    assert set(by_index(cluster)) == {"1"}
    await cluster.wait(11)
    again = by_index(cluster)["0"]
    assert again["metadata"]["annotations"][_TIMES] == "1"
    assert by_index(cluster)["1"]["metadata"]["annotations"][_TIMES] == "0"

    # The second failure of an index is one too many; the other one goes on.
    fail(cluster, again)
    await cluster.wait(60)
    assert set(by_index(cluster)) == {"1"}
    assert status(cluster)["failedIndexes"] == "0"
    assert ended(cluster) == {}
    cluster.end(active(cluster))
    await cluster.settle()
    assert ended(cluster)["Failed"] == "FailedIndexes"
    assert status(cluster)["completedIndexes"] == "1"


@played
async def test_an_index_remembers_failures_of_pods_that_are_gone(cluster: Play) -> None:
    spec = job(completions=1, completionMode="Indexed", backoffLimitPerIndex=1)
    cluster.create("jobs.batch", "j", spec)
    await cluster.settle()
    (pod,) = active(cluster)
    fail(cluster, pod)
    await cluster.settle()
    cluster.delete("pods", pod["metadata"]["name"], grace=0)
    await cluster.wait(11)

    assert by_index(cluster)["0"]["metadata"]["annotations"][_TIMES] == "1"


@pytest.mark.parametrize(
    ("most", "policy", "ends", "failed"),
    [
        # The others are stopped, and so have failed for the last time, too.
        pytest.param(0, None, "MaxFailedIndexesExceeded", "0-2", id="too many"),
        pytest.param(1, None, None, "1", id="not too many"),
        pytest.param(0, rules(("FailIndex", exits("In", 9))), None, "", id="another code"),
    ],
)
@played
async def test_so_many_indexes_may_fail(
    cluster: Play, most: int, policy: Json | None, ends: str | None, failed: str
) -> None:
    limit = 0 if policy is None else 5
    spec = job(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=limit)
    ruled = {} if policy is None else {"podFailurePolicy": policy}
    cluster.create("jobs.batch", "j", {**spec, "maxFailedIndexes": most, **ruled})
    await cluster.settle()
    fail(cluster, by_index(cluster)["1"])
    await cluster.settle()

    assert ended(cluster).get("Failed") == ends
    assert status(cluster)["failedIndexes"] == failed


@played
async def test_a_rule_can_fail_an_index_at_once(cluster: Play) -> None:
    policy = rules(("FailIndex", exits("In", 9)))
    spec = job(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=5)
    cluster.create("jobs.batch", "j", {**spec, "podFailurePolicy": policy})
    await cluster.settle()
    fail(cluster, by_index(cluster)["1"], 9)
    await cluster.wait(60)

    assert status(cluster)["failedIndexes"] == "1"
    assert set(by_index(cluster)) == {"0"}


@pytest.mark.parametrize(
    ("rule", "done", "met"),
    [
        pytest.param({"succeededCount": 2}, "03", True, id="so many"),
        pytest.param({"succeededCount": 3}, "03", False, id="not so many"),
        pytest.param({"succeededIndexes": "0,3"}, "03", True, id="these"),
        pytest.param({"succeededIndexes": "0-2"}, "03", False, id="not all of these"),
        pytest.param({"succeededIndexes": "0-2", "succeededCount": 1}, "03", True, id="one of"),
        pytest.param({"succeededIndexes": "7-9"}, "03", False, id="none that there is"),
    ],
)
@played
async def test_success_policies(cluster: Play, rule: Json, done: str, met: bool) -> None:
    spec = job(completions=4, parallelism=4, completionMode="Indexed")
    cluster.create("jobs.batch", "j", {**spec, "successPolicy": {"rules": [rule]}})
    await cluster.settle()
    cluster.end([by_index(cluster)[each] for each in done])
    await cluster.settle()

    assert ended(cluster).get("Complete") == ("SuccessPolicy" if met else None)
    assert len(active(cluster)) == (0 if met else 2)


@played
async def test_fewer_completions_remove_the_last_indexes(cluster: Play) -> None:
    spec = job(completions=4, parallelism=4, completionMode="Indexed")
    cluster.create("jobs.batch", "j", spec)
    await cluster.settle()
    cluster.change("jobs.batch", "j", completions=2, parallelism=2)
    await cluster.settle()

    assert set(by_index(cluster)) == {"0", "1"}


@played
async def test_pods_that_are_not_needed_any_more_have_not_failed(cluster: Play) -> None:
    spec = job(completions=4, parallelism=4, completionMode="Indexed")
    cluster.create("jobs.batch", "j", spec)
    await cluster.settle()
    cluster.end([by_index(cluster)[each] for each in "01"])
    await cluster.settle()
    cluster.change("jobs.batch", "j", completions=2, parallelism=2)
    await cluster.settle()

    assert "Complete" in ended(cluster)
    assert "failed" not in status(cluster)


@played
async def test_a_container_that_succeeded_is_no_failure(cluster: Play) -> None:
    policy = rules(("FailJob", exits("NotIn", 41)))
    cluster.create("jobs.batch", "j", job(podFailurePolicy=policy))
    await cluster.settle()
    (pod,) = cluster.pods()
    codes = {"main": 41, "other": 0}
    told = [
        {"name": name, "state": {"terminated": {"exitCode": code}}} for name, code in codes.items()
    ]
    cluster.set_status("pods", pod, phase="Failed", containerStatuses=told)
    await cluster.settle()

    assert ended(cluster) == {}


@pytest.mark.parametrize(("limit", "restarts", "ends"), [(2, 1, False), (2, 2, True), (0, 1, True)])
@played
async def test_restarts_of_containers_count(
    cluster: Play, limit: int, restarts: int, ends: bool
) -> None:
    spec = job(backoffLimit=limit)
    spec["template"]["spec"]["restartPolicy"] = "OnFailure"
    cluster.create("jobs.batch", "j", spec)
    await cluster.settle()
    (pod,) = cluster.pods()
    told = [{"name": "main", "restartCount": restarts}]
    cluster.set_status("pods", pod, phase="Running", containerStatuses=told)
    await cluster.settle()

    assert ("Failed" in ended(cluster)) is ends


@played
async def test_a_job_of_another_controller_is_left_alone(cluster: Play) -> None:
    cluster.create("jobs.batch", "j", job(managedBy="example.com/queue"))
    await cluster.settle()

    assert cluster.pods() == []


@played
async def test_a_job_tells_what_becomes_of_it(cluster: Play) -> None:
    cluster.create("jobs.batch", "j", job(suspend=True))
    await cluster.settle()
    cluster.change("jobs.batch", "j", suspend=False)
    await cluster.settle()
    cluster.end(active(cluster))
    await cluster.settle()

    told = [each["reason"] for each in cluster.objects("events")]
    assert sorted(told) == ["Completed", "Resumed", "SuccessfulCreate", "Suspended"]
