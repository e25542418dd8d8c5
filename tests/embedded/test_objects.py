"""Creating, reading, replacing, patching and deleting objects over HTTP."""

from __future__ import annotations

from tests.embedded.serving import NODES, PODS, Client, binding, node, pod


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


async def test_a_write_that_changes_nothing_keeps_the_version(client: Client) -> None:
    made = await client.create(PODS, pod("a"))

    assert await client.put(f"{PODS}/a", made) == made


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
