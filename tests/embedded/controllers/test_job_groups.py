"""Jobs that say how their pods are placed together, as in Kubernetes 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.request_refusals import RequestRefused
from tests.embedded.controllers.playing import Json, Play, played, template

JOBS, GROUPS = "jobs.batch", "podgroups.scheduling.k8s.io"
WORKLOADS = "workloads.scheduling.k8s.io"
GANG: Json = {"schedulingPolicy": {"gang": {}}}


def job(scheduling: Json | None, **spec: Any) -> Json:
    made = template()
    made["spec"]["restartPolicy"] = "Never"
    asked = {} if scheduling is None else {"scheduling": scheduling}
    return {"template": made, "parallelism": 3, "completions": 3, **asked, **spec}


@played
async def test_a_job_makes_a_workload_a_group_and_pods_that_name_it(cluster: Play) -> None:
    constraints = {"topology": [{"key": "rack"}]}
    asked = {**GANG, "schedulingConstraints": constraints, "disruptionMode": {"all": {}}}
    made = cluster.create(JOBS, "j", job(asked))
    await cluster.settle()

    (workload,), (group,) = cluster.objects(WORKLOADS), cluster.objects(GROUPS)
    uid = made["metadata"]["uid"]
    assert workload["spec"]["controllerRef"] == {"apiGroup": "batch", "kind": "Job", "name": "j"}
    (listed,) = workload["spec"]["podGroupTemplates"]
    assert listed["name"] == "j-pgt-0"
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert group["spec"]["schedulingConstraints"] == constraints
    assert group["spec"]["disruptionMode"] == "PodGroup"
    link = group["spec"]["podGroupTemplateRef"]["workload"]
    assert link == {
        "workloadName": workload["metadata"]["name"],
        "podGroupTemplateName": "j-pgt-0",
    }
    assert [each["kind"] for each in group["metadata"]["ownerReferences"]] == ["Job", "Workload"]
    name = group["metadata"]["name"]
    assert name.startswith(f"{workload['metadata']['name']}-j-pgt-0-")
    for pod in cluster.pods():
        assert pod["spec"]["schedulingGroup"] == {"podGroupName": name}
        owners = {each["kind"]: each["uid"] for each in pod["metadata"]["ownerReferences"]}
        assert owners == {"Job": uid, "PodGroup": group["metadata"]["uid"]}
    assert len(cluster.pods()) == 3
    events = [(each["reason"], each["message"]) for each in cluster.objects("events")]
    assert ("PodGroupCreated", f"Created PodGroup {name} for Job j") in events
    text = f"Created Workload {workload['metadata']['name']} for Job j"
    assert ("WorkloadCreated", text) in events


@played
async def test_another_least_number_is_written_to_both(cluster: Play) -> None:
    cluster.create(JOBS, "j", job({"schedulingPolicy": {"gang": {"minCount": 2}}}))
    await cluster.settle()

    cluster.change(JOBS, "j", scheduling={"schedulingPolicy": {"gang": {"minCount": 3}}})
    await cluster.settle()

    (workload,), (group,) = cluster.objects(WORKLOADS), cluster.objects(GROUPS)
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    (listed,) = workload["spec"]["podGroupTemplates"]
    assert listed["schedulingPolicy"] == {"gang": {"minCount": 3}}


@pytest.mark.parametrize("how", ["says nothing", "has a group", "is owned"])
@played
async def test_other_jobs_make_no_groups(cluster: Play, how: str) -> None:
    spec = job(None if how == "says nothing" else GANG)
    if how == "has a group":
        spec["template"]["spec"]["schedulingGroup"] = {"podGroupName": "mine"}
    metadata: Json = {}
    if how == "is owned":
        owner = cluster.create("configmaps", "c")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "controller": True}
        metadata = {"ownerReferences": [{**reference, "uid": owner["metadata"]["uid"]}]}
    cluster.create(JOBS, "j", spec, metadata=metadata)
    await cluster.settle()

    assert len(cluster.pods()) == 3
    assert cluster.objects(GROUPS) == cluster.objects(WORKLOADS) == []


@played
async def test_all_of_it_goes_with_the_job(cluster: Play) -> None:
    cluster.create(JOBS, "j", job(GANG))
    await cluster.settle()
    cluster.delete(JOBS, "j")
    await cluster.settle()

    assert cluster.objects(GROUPS) == cluster.objects(WORKLOADS) == cluster.pods() == []


@pytest.mark.parametrize(
    ("scheduling", "why"),
    [
        (
            {"schedulingPolicy": {"gang": {"minCount": 4}}},
            "must not be greater than parallelism (3)",
        ),
        ({"schedulingPolicy": {"gang": {"minCount": -1}}}, "must be greater than or equal to 1"),
        ({"schedulingPolicy": {"gang": {}, "basic": {}}}, "must specify exactly one of"),
    ],
)
@played
async def test_groups_that_cannot_be_are_refused(cluster: Play, scheduling: Json, why: str) -> None:
    with pytest.raises(RequestRefused) as refusal:
        cluster.create(JOBS, "j", job(scheduling))
    assert why in refusal.value.message


@played
async def test_what_else_a_job_says_of_its_group_stays(cluster: Play) -> None:
    cluster.create(JOBS, "j", job(GANG))

    with pytest.raises(RequestRefused) as refusal:
        cluster.change(JOBS, "j", scheduling={"schedulingPolicy": {"basic": {}}})
    assert "field is immutable" in refusal.value.message
