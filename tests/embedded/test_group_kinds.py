"""Pod groups and workloads are stored as Kubernetes 1.36 has them, with the rules of 1.37."""

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
