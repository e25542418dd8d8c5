"""Pod groups and workloads are stored as Kubernetes 1.36 has them."""

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
    status = await client.refused(422, "PUT", f"{ROOT}/podgroups/g", after)
    assert "field is immutable" in status["message"]


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
