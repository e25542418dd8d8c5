"""Limit ranges fill in and bound what pods ask for; runtime classes add their overhead."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.serving import PODS, Client, Json, pod

RANGES = "/api/v1/namespaces/default/limitranges"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


async def limit(client: Client, kind: str, **amounts: Json) -> Json:
    spec = {"limits": [{"type": kind, **amounts}]}
    return await client.create(RANGES, {"metadata": {"name": kind.lower()}, "spec": spec})


def asking(**resources: Json) -> Json:
    return pod("a", containers=[{"name": "main", "image": "a", "resources": resources}])


async def test_containers_get_what_they_do_not_say(client: Client) -> None:
    made = await limit(client, "Container", max={"cpu": "2"}, min={"memory": "64Mi"})
    (item,) = made["spec"]["limits"]
    assert item["default"] == {"cpu": "2"}
    assert item["defaultRequest"] == {"cpu": "2", "memory": "64Mi"}

    found = await client.create(PODS, asking(requests={"cpu": "1"}))

    assert found["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2"},
        "requests": {"cpu": "1", "memory": "64Mi"},
    }
    assert found["status"]["qosClass"] == "Burstable"
    note = found["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
    assert note == (
        "LimitRanger plugin set: memory request for container main; cpu limit for container main"
    )


@pytest.mark.parametrize(
    ("kind", "bounds", "asked", "told"),
    [
        (
            "Container",
            {"min": {"cpu": "500m"}},
            {"requests": {"cpu": "100m"}},
            "minimum cpu usage per Container is 500m, but request is 100m",
        ),
        (
            "Container",
            {"max": {"cpu": "1"}},
            {"limits": {"cpu": "1500m"}},
            "maximum cpu usage per Container is 1, but limit is 1500m",
        ),
        (
            "Container",
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            "Pod",
            {"max": {"memory": "1Gi"}},
            {},
            "maximum memory usage per Pod is 1Gi.  No limit is specified",
        ),
        (
            "Pod",
            {"min": {"cpu": "2"}},
            {"requests": {"cpu": "1500m"}},
            "minimum cpu usage per Pod is 2, but request is 1500m",
        ),
    ],
)
async def test_pods_beyond_the_limits_are_refused(
    client: Client, kind: str, bounds: Json, asked: Json, told: str
) -> None:
    await limit(client, kind, **bounds)

    status = await client.refused(403, "POST", PODS, asking(**asked))

    assert status["message"] == f'pods "a" is forbidden: {told}'


async def test_claims_are_bounded_by_their_requests(client: Client) -> None:
    await limit(client, "PersistentVolumeClaim", min={"storage": "1Gi"}, max={"storage": "2Gi"})

    def claim(size: str) -> Json:
        resources = {"requests": {"storage": size}}
        spec = {"accessModes": ["ReadWriteOnce"], "resources": resources}
        return {"metadata": {"name": f"c{size.lower()}"}, "spec": spec}

    await client.create(CLAIMS, claim("2Gi"))
    for size, told in (("3Gi", "maximum"), ("1Mi", "minimum")):
        status = await client.refused(403, "POST", CLAIMS, claim(size))
        assert told in status["message"]


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}, "is greater than max"),
        ({"type": "Pod", "default": {"cpu": "2"}}, "may not be specified when `type` is 'Pod'"),
        ({"type": "PersistentVolumeClaim"}, "either minimum or maximum storage value"),
        ({}, "spec.limits[0].type: Required value"),
    ],
)
async def test_limits_that_make_no_sense(client: Client, item: Json, told: str) -> None:
    body = {"metadata": {"name": "x"}, "spec": {"limits": [item]}}

    assert told in (await client.refused(422, "POST", RANGES, body))["message"]


async def test_a_runtime_class_adds_overhead_and_says_where_pods_run(client: Client) -> None:
    toleration = {"key": "vm", "operator": "Exists"}
    scheduling = {"nodeSelector": {"vm": "yes"}, "tolerations": [toleration]}
    body = {"metadata": {"name": "vm"}, "handler": "vm", "scheduling": scheduling}
    await client.create(CLASSES, {**body, "overhead": {"podFixed": {"cpu": "250m"}}})

    made = await client.create(PODS, pod("a", runtimeClassName="vm", nodeSelector={"a": "b"}))

    assert made["spec"]["overhead"] == {"cpu": "250m"}
    assert made["spec"]["nodeSelector"] == {"a": "b", "vm": "yes"}
    assert toleration in made["spec"]["tolerations"]
    assert (await client.put(f"{PODS}/a", made))["metadata"] == made["metadata"]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
        ({"overhead": {"cpu": "1"}}, "Pod Overhead set without corresponding RuntimeClass"),
        ({"runtimeClassName": "vm", "overhead": {"cpu": "1"}}, "Overhead doesn't match"),
        (
            {"runtimeClassName": "vm", "nodeSelector": {"vm": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes",
        ),
    ],
)
async def test_pods_that_contradict_a_runtime_class(client: Client, spec: Any, told: str) -> None:
    scheduling = {"nodeSelector": {"vm": "yes"}}
    body = {"metadata": {"name": "vm"}, "handler": "vm", "scheduling": scheduling}
    await client.create(CLASSES, {**body, "overhead": {"podFixed": {"cpu": "250m"}}})

    assert told in (await client.refused(403, "POST", PODS, pod("a", **spec)))["message"]
