"""Pod groups and workloads are stored as Kubernetes 1.36 has them, and 1.37's are views of them."""

from __future__ import annotations

import pytest

from tests.embedded.serving import Client, Json

ROOT = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default"


def group(**policy: Json) -> Json:
    return {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": policy}}


async def test_a_group_has_a_policy_that_stays_and_a_status(client: Client) -> None:
    made = await client.create(f"{ROOT}/podgroups", group(gang={"minCount": 2}))
    made["status"] = {"conditions": [{"type": "PodGroupScheduled", "status": "True"}]}

    after = await client.put(f"{ROOT}/podgroups/g/status", made)

    assert after["status"]["conditions"][0]["type"] == "PodGroupScheduled"
    after["spec"]["schedulingPolicy"]["gang"]["minCount"] = 3
    after = await client.put(f"{ROOT}/podgroups/g", after)
    assert after["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    changes: list[Json] = [
        {"schedulingPolicy": {"basic": {}}},
        {"schedulingConstraints": {"topology": [{"key": "rack"}]}},
    ]
    for change in changes:
        changed = {**after, "spec": {**after["spec"], **change}}
        status = await client.refused(422, "PUT", f"{ROOT}/podgroups/g", changed)
        assert "field is immutable" in status["message"]


async def test_a_group_gets_the_priority_of_its_class(client: Client) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await client.create(classes, {"metadata": {"name": "high"}, "value": 7})
    made = group(gang={"minCount": 2})
    made["spec"]["priorityClassName"] = "high"

    found = await client.create(f"{ROOT}/podgroups", made)

    assert found["spec"]["priority"] == 7
    made["metadata"]["name"], made["spec"]["priority"] = "other", 5
    status = await client.refused(403, "POST", f"{ROOT}/podgroups", made)
    assert "computed 7 from the given PriorityClass name" in status["message"]
    made["spec"] = {**made["spec"], "priorityClassName": "nobody"}
    await client.refused(403, "POST", f"{ROOT}/podgroups", made)


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({}, "must specify one of: `basic`, `gang`"),
        ({"gang": {"minCount": 0}}, "must be greater than or equal to 1"),
    ],
)
async def test_groups_that_cannot_be_placed(client: Client, policy: Json, told: str) -> None:
    template = {"name": "t", "schedulingPolicy": policy}
    workload = {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": [template]}}
    for path, item in (("podgroups", group(**policy)), ("workloads", workload)):
        status = await client.refused(422, "POST", f"{ROOT}/{path}", item)
        assert told in status["message"]


BETA = ROOT.replace("v1alpha2", "v1beta1")


async def test_a_group_is_one_object_in_both_versions(client: Client) -> None:
    made = group(gang={"minCount": 2})
    made["spec"] |= {
        "disruptionMode": {"all": {}},
        "workloadRef": {"workloadName": "w", "templateName": "t"},
    }
    beta = await client.create(f"{BETA}/podgroups", made)

    assert beta["apiVersion"] == "scheduling.k8s.io/v1beta1"
    assert beta["spec"]["disruptionMode"] == {"all": {}}
    assert beta["spec"]["workloadRef"] == {"workloadName": "w", "templateName": "t"}
    alpha = await client.get(f"{ROOT}/podgroups/g")
    assert alpha["spec"]["disruptionMode"] == "PodGroup"
    link = {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
    assert alpha["spec"]["podGroupTemplateRef"] == link
    assert "workloadRef" not in alpha["spec"]
    alpha["status"] = {"conditions": [{"type": "PodGroupScheduled", "status": "True"}]}
    await client.put(f"{ROOT}/podgroups/g/status", alpha)
    (condition,) = (await client.get(f"{BETA}/podgroups/g"))["status"]["conditions"]
    assert condition["type"] == "PodGroupInitiallyScheduled"


async def test_the_scheduler_writes_conditions_in_the_newer_version(client: Client) -> None:
    await client.create(f"{BETA}/podgroups", group(basic={}))
    condition = {"type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Unschedulable"}
    for status in ("False", "True"):
        patch = {"status": {"conditions": [{**condition, "status": status}]}}
        await client.patch(f"{BETA}/podgroups/g/status", patch, "strategic-merge")

    (stored,) = (await client.get(f"{ROOT}/podgroups/g"))["status"]["conditions"]
    assert (stored["type"], stored["status"]) == ("PodGroupScheduled", "True")


async def test_a_condition_without_a_type_is_no_error_of_the_server(client: Client) -> None:
    made = {**group(basic={}), "status": {"conditions": [{}, {"type": None}]}}
    beta = await client.create(f"{BETA}/podgroups", made)

    assert beta["metadata"]["name"] == "g"


async def test_a_workload_is_one_object_in_both_versions(client: Client) -> None:
    template = {"name": "t", "schedulingPolicy": {"basic": {}}, "disruptionMode": {"single": {}}}
    made = {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": [template]}}
    beta = await client.create(f"{BETA}/workloads", made)
    alpha = await client.get(f"{ROOT}/workloads/w")

    assert beta["spec"]["podGroupTemplates"][0]["disruptionMode"] == {"single": {}}
    assert alpha["spec"]["podGroupTemplates"][0]["disruptionMode"] == "Pod"
