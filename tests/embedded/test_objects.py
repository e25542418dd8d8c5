"""Creating, reading, replacing, patching and deleting objects over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.serving import (
    MAPS,
    NODES,
    PODS,
    SERVICES,
    Client,
    Json,
    binding,
    node,
    pod,
    service,
)


async def test_what_is_created_can_be_read(client: Client) -> None:
    made = await client.create(PODS, pod("a"))

    assert await client.get(f"{PODS}/a") == made
    assert made["metadata"]["uid"]
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made["spec"]["schedulerName"] == "default-scheduler"


async def test_an_update_from_an_old_version_is_a_conflict(client: Client) -> None:
    made = await client.create(PODS, pod("a"))
    made["metadata"]["labels"] = {"x": "1"}
    await client.put(f"{PODS}/a", made)

    status = await client.refused(409, "PUT", f"{PODS}/a", made)

    assert status["reason"] == "Conflict"
    assert status["details"] == {"name": "a", "kind": "pods"}


@pytest.mark.parametrize("version", ["", "0"])
async def test_an_update_may_replace_any_version(client: Client, version: str) -> None:
    made = await client.create(PODS, pod("a"))
    await client.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "1"}}})
    made["metadata"] |= {"resourceVersion": version, "labels": {"x": "2"}}

    assert (await client.put(f"{PODS}/a", made))["metadata"]["labels"] == {"x": "2"}


async def test_a_write_that_changes_nothing_keeps_the_version(client: Client) -> None:
    made = await client.create(PODS, pod("a"))

    assert await client.put(f"{PODS}/a", made) == made


@pytest.mark.parametrize(
    ("plural", "labels"), [("deployments", {"app": "web"}), ("replicasets", {"app": "other"})]
)
async def test_a_write_to_the_status_may_annotate(
    client: Client, plural: str, labels: Json
) -> None:
    """Controllers do so. The labels of a deployment stay, and so does every spec."""
    path = f"/apis/apps/v1/namespaces/default/{plural}"
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("a")["spec"]}
    made = await client.create(
        path,
        {
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
        },
    )
    made["metadata"] |= {"annotations": {"revision": "1"}, "labels": {"app": "other"}}
    made["spec"]["replicas"] = 7
    made["status"]["replicas"] = 1

    put = await client.put(f"{path}/web/status", made)

    assert put["metadata"]["annotations"] == {"revision": "1"}
    assert put["metadata"]["labels"] == labels
    assert (put["spec"]["replicas"], put["status"]["replicas"]) == (1, 1)


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {
    "accessModes": ["ReadWriteOnce"],
    "capacity": {"storage": "1Gi"},
    "hostPath": {"path": "/a"},
}


@pytest.mark.parametrize(
    ("path", "spec"),
    [
        ("/api/v1/namespaces/default/services", {"ports": [{"port": 80}]}),
        ("/api/v1/namespaces/default/persistentvolumeclaims", CLAIM),
        ("/api/v1/persistentvolumes", VOLUME),
        ("/apis/batch/v1/namespaces/default/cronjobs", {}),
        ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", {}),
    ],
)
async def test_a_write_to_the_status_may_label(client: Client, path: str, spec: Json) -> None:
    made = await client.create(path, {"metadata": {"name": "a"}, "spec": spec})
    written = {"labels": {"a": "1"}, "annotations": {"b": "2"}}

    await client.put(f"{path}/a/status", {**made, "metadata": {**made["metadata"], **written}})

    found = (await client.get(f"{path}/a"))["metadata"]
    assert {key: found[key] for key in written} == written


async def test_a_write_to_the_status_of_an_attachment_keeps_its_metadata(client: Client) -> None:
    path = "/apis/storage.k8s.io/v1/volumeattachments"
    source = {"persistentVolumeName": "v"}
    made = await client.create(
        path,
        {
            "metadata": {"name": "a"},
            "spec": {"attacher": "x", "nodeName": "n", "source": source},
        },
    )
    made["metadata"]["labels"] = {"a": "1"}

    assert "labels" not in (await client.put(f"{path}/a/status", made))["metadata"]


async def test_binding_assigns_a_pod_once(client: Client) -> None:
    await client.create(NODES, node("n", **{"topology.kubernetes.io/zone": "z"}))
    await client.create(PODS, pod("a"))

    await client.create(f"{PODS}/a/binding", binding("a", "n"))

    bound = await client.get(f"{PODS}/a")
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z"}
    assert [each["type"] for each in bound["status"]["conditions"]] == ["PodScheduled"]
    status = await client.refused(409, "POST", f"{PODS}/a/binding", binding("a", "n"))
    assert 'pod a is already assigned to node "n"' in status["message"]


async def test_a_pod_on_a_node_is_deleted_with_grace(client: Client) -> None:
    await client.create(PODS, pod("a", nodeName="n"))

    marked = await client.delete(f"{PODS}/a")

    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    assert (await client.get(f"{PODS}/a"))["metadata"]["deletionTimestamp"]
    await client.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    await client.refused(404, "GET", f"{PODS}/a")


async def test_a_watch_tells_what_happens_after_its_version(client: Client) -> None:
    listed = await client.get(PODS)
    version = listed["metadata"]["resourceVersion"]
    await client.create(PODS, pod("a"))
    async with client.watch(f"{PODS}?watch=1&resourceVersion={version}") as events:
        assert (await anext(events))["type"] == "ADDED"
        await client.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "1"}}})
        assert (await anext(events))["type"] == "MODIFIED"
        await client.delete(f"{PODS}/a")
        gone = await anext(events)

    assert gone["type"] == "DELETED"
    assert gone["object"]["metadata"]["labels"] == {"x": "1"}


async def test_without_the_token_nobody_gets_anything(client: Client) -> None:
    for path in ("/version", "/healthz", "/api", PODS, "/nowhere"):
        status = await client.refused(401, "GET", path, headers={"Authorization": "Bearer no"})
        assert status["message"] == "Unauthorized"


@pytest.mark.parametrize(
    ("path", "body", "shown"),
    [
        (MAPS, {}, "Status"),
        (NODES, {}, "Status"),
        (SERVICES, service(""), "Service"),
        ("/api/v1/namespaces/default/serviceaccounts", {}, "ServiceAccount"),
        (
            "/api/v1/persistentvolumes",
            {
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": {"storage": "1Gi"},
                    "hostPath": {"path": "/"},
                }
            },
            "PersistentVolume",
        ),
        ("/apis/storage.k8s.io/v1/storageclasses", {"provisioner": "a"}, "StorageClass"),
        ("/apis/storage.k8s.io/v1/csinodes", {"spec": {"drivers": []}}, "CSINode"),
        ("/apis/storage.k8s.io/v1/csidrivers", {"spec": {}}, "CSIDriver"),
    ],
)
async def test_what_a_deletion_is_answered_with(
    client: Client, path: str, body: Json, shown: str
) -> None:
    await client.create(path, {**body, "metadata": {"name": "x"}})

    assert (await client.delete(f"{path}/x"))["kind"] == shown
    await client.refused(404, "GET", f"{path}/x")


@pytest.mark.parametrize(
    ("path", "body", "field", "value"),
    [
        (
            "/api/v1/namespaces/default/podtemplates",
            {"template": {"spec": pod("")["spec"]}},
            "template.spec.restartPolicy",
            "Always",
        ),
        (
            "/apis/storage.k8s.io/v1/volumeattachments",
            {"spec": {"attacher": "a", "nodeName": "n", "source": {}}},
            "status.attached",
            False,
        ),
        (
            "/api/v1/namespaces/default/events",
            {"involvedObject": {"kind": "Pod"}},
            "lastTimestamp",
            None,
        ),
        (
            "/apis/events.k8s.io/v1/namespaces/default/events",
            {"regarding": {"kind": "Pod"}},
            "deprecatedFirstTimestamp",
            None,
        ),
    ],
)
async def test_what_is_filled_in(
    client: Client, path: str, body: Json, field: str, value: Any
) -> None:
    found: Any = await client.create(path, {**body, "metadata": {"name": "x"}})

    for step in field.split("."):
        found = found[step]
    assert found == value


@pytest.mark.parametrize("field", ["labels", "annotations", "finalizers"])
async def test_what_is_emptied_is_left_out(client: Client, field: str) -> None:
    full: Any = ["example.com/a"] if field == "finalizers" else {"a": "b"}
    await client.create(MAPS, {"metadata": {"name": "x", field: full}, "data": {"a": "b"}})

    emptied = {"metadata": {"name": "x", field: type(full)()}, "data": {}}
    kept = await client.put(f"{MAPS}/x", emptied)

    assert field not in kept["metadata"]
    assert "data" not in kept


async def test_less_than_no_grace_is_a_second(client: Client) -> None:
    await client.create(PODS, pod("a", nodeName="n"))

    marked = await client.delete(f"{PODS}/a", {"gracePeriodSeconds": -5})

    assert marked["metadata"]["deletionGracePeriodSeconds"] == 1


@pytest.mark.parametrize(("name", "code"), [("system:node", 201), ("..", 422), ("a%b", 422)])
async def test_names_of_roles(client: Client, name: str, code: int) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"

    assert (await client.ask("POST", roles, {"metadata": {"name": name}}))[0] == code


ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@pytest.mark.parametrize(
    ("path", "warned"),
    [
        ("/apis/batch/v1/namespaces/default/cronjobs", "nothing makes Jobs of them"),
        ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", "no traffic flows"),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "the token may do everything"),
        (f"{ADMISSION}/validatingadmissionpolicies", "no request is refused"),
        (f"{ADMISSION}/validatingadmissionpolicybindings", "no request is refused"),
        (MAPS, ""),
    ],
)
async def test_who_creates_what_nothing_acts_on_is_warned(
    client: Client, path: str, warned: str
) -> None:
    url, item = client.running.url + path, {"metadata": {"name": "a"}}
    async with client.session.post(url, json=item) as response:
        assert response.status == 201
        assert warned in response.headers.get("Warning", "")
        assert bool(warned) is ("Warning" in response.headers)
