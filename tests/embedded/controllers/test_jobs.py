"""Jobs: so many pods at a time, until enough have succeeded."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.controllers import job_counts
from tests.embedded.controllers.playing import Json, Play, played, template


def job(**spec: Any) -> Json:
    made = template()
    made["spec"]["restartPolicy"] = "Never"
    return {"template": made, **spec}


def status(cluster: Play) -> Json:
    return cluster.get("jobs.batch", "j")["status"]


def ended(cluster: Play) -> dict[str, str]:
    conditions = status(cluster).get("conditions") or ()
    return {each["type"]: each["reason"] for each in conditions if each["status"] == "True"}


def active(cluster: Play) -> list[Json]:
    return [e for e in cluster.pods() if e["status"]["phase"] in ("Pending", "Running")]


@pytest.mark.parametrize(
    ("spec", "steps"),
    [
        pytest.param({}, [1], id="one"),
        pytest.param({"completions": 5, "parallelism": 2}, [2, 2, 1], id="two at a time"),
        pytest.param({"completions": 3, "parallelism": 9}, [3], id="no more than are needed"),
        pytest.param({"parallelism": 3}, [3], id="until the first says that all is done"),
        pytest.param(
            {"completions": 5, "parallelism": 3, "completionMode": "Indexed"}, [3, 2], id="indexed"
        ),
    ],
)
@played
async def test_a_job_runs_to_its_end(cluster: Play, spec: Json, steps: list[int]) -> None:
    cluster.create("jobs.batch", "j", job(**spec))
    for step in steps:
        await cluster.settle()
        assert len(active(cluster)) == step == status(cluster)["active"]
        cluster.end(active(cluster))
    await cluster.settle()

    assert ended(cluster) == {
        "SuccessCriteriaMet": "CompletionsReached",
        "Complete": "CompletionsReached",
    }
    assert status(cluster)["succeeded"] == sum(steps)
    assert "active" not in status(cluster)
    assert "completionTime" in status(cluster)


@played
async def test_indexes_are_given_out_once_and_again_after_a_failure(cluster: Play) -> None:
    spec = job(completions=4, parallelism=4, completionMode="Indexed")
    cluster.create("jobs.batch", "j", spec)
    await cluster.settle()
    label = "batch.kubernetes.io/job-completion-index"
    by_index = {each["metadata"]["labels"][label]: each for each in cluster.pods()}
    assert sorted(by_index) == ["0", "1", "2", "3"]
    assert by_index["2"]["metadata"]["annotations"][label] == "2"
    assert by_index["2"]["metadata"]["name"].startswith("j-2-")
    assert by_index["2"]["spec"]["hostname"] == "j-2"
    (variable,) = by_index["2"]["spec"]["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    path = variable["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == f"metadata.labels['{label}']"

    cluster.end([by_index["1"]], "Failed")
    cluster.end([by_index[each] for each in "023"])
    await cluster.settle()
    assert status(cluster)["completedIndexes"] == "0,2,3"
    assert active(cluster) == []

    await cluster.wait(11)
    (again,) = active(cluster)
    assert again["metadata"]["labels"][label] == "1"
    cluster.end([again])
    await cluster.settle()
    assert status(cluster)["completedIndexes"] == "0-3"
    assert "Complete" in ended(cluster)


@played
async def test_too_many_failures_end_a_job(cluster: Play) -> None:
    cluster.create("jobs.batch", "j", job(completions=3, parallelism=3, backoffLimit=1))
    await cluster.settle()
    first, second, _ = cluster.pods()
    cluster.end([first], "Failed")
    await cluster.settle()
    assert ended(cluster) == {}
    cluster.end([second], "Failed")
    await cluster.settle()

    assert ended(cluster)["Failed"] == "BackoffLimitExceeded"
    # Those that are stopped for it have not succeeded, either.
    assert status(cluster)["failed"] == 3
    assert active(cluster) == []


@played
async def test_each_failure_is_followed_by_a_longer_wait(cluster: Play) -> None:
    cluster.create("jobs.batch", "j", job())
    await cluster.settle()
    for seconds in (10, 20, 40):
        cluster.end(active(cluster), "Failed")
        await cluster.wait(seconds - 2)
        assert active(cluster) == []
        await cluster.wait(3)
        assert len(active(cluster)) == 1


@played
async def test_pods_that_are_gone_still_count(cluster: Play) -> None:
    cluster.create("jobs.batch", "j", job(completions=4, parallelism=2))
    await cluster.settle()
    for _ in range(2):
        cluster.end(active(cluster))
        await cluster.settle()
        for each in cluster.pods():
            if each["status"]["phase"] == "Succeeded":
                cluster.delete("pods", each["metadata"]["name"])
        await cluster.settle()

    assert status(cluster)["succeeded"] == 4
    assert "Complete" in ended(cluster)


@played
async def test_a_suspended_job_has_no_pods_and_these_are_no_failures(cluster: Play) -> None:
    cluster.create("jobs.batch", "j", job(completions=2, parallelism=2))
    await cluster.settle()
    cluster.change("jobs.batch", "j", suspend=True)
    await cluster.settle()
    assert cluster.pods() == []
    assert ended(cluster) == {"Suspended": "JobSuspended"}
    assert "failed" not in status(cluster)
    assert "startTime" not in status(cluster)

    cluster.change("jobs.batch", "j", suspend=False)
    await cluster.settle()
    assert len(cluster.pods()) == 2
    assert ended(cluster) == {}


@played
async def test_less_parallelism_removes_pods(cluster: Play) -> None:
    cluster.create("jobs.batch", "j", job(completions=9, parallelism=5))
    await cluster.settle()
    cluster.change("jobs.batch", "j", parallelism=2)
    await cluster.settle()

    assert len(active(cluster)) == 2
    assert "failed" not in status(cluster)


@played
async def test_a_job_is_active_for_only_so_long(cluster: Play) -> None:
    cluster.create("jobs.batch", "j", job(activeDeadlineSeconds=30))
    await cluster.wait(29)
    assert ended(cluster) == {}
    await cluster.wait(2)

    assert ended(cluster)["Failed"] == "DeadlineExceeded"
    assert active(cluster) == []


@played
async def test_a_job_that_has_ended_goes_with_its_pods(cluster: Play) -> None:
    cluster.create("jobs.batch", "j", job(ttlSecondsAfterFinished=60))
    await cluster.settle()
    cluster.end(cluster.pods())
    await cluster.wait(59)
    assert cluster.names("jobs.batch") == ["j"]
    await cluster.wait(2)

    assert cluster.names("jobs.batch") == []
    assert cluster.objects("pods") == []


@pytest.mark.parametrize("text", ["", "0", "0,1", "0-3", "0,2,3,7", "1,2,4-6"])
def test_indexes_are_read_as_they_are_written(text: str) -> None:
    assert job_counts.format_indexes(job_counts.read_indexes(text)) == text
