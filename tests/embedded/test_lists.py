"""Lists: pages of one moment, selectors, and other forms than objects."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from moorage.embedded.server import ServerSettings
from tests.embedded.serving import NODES, PODS, Client, node, pod, served

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def names(listed: dict[str, Any]) -> list[str]:
    return [each["metadata"]["name"] for each in listed["items"]]


def labelled(name: str, **labels: str) -> dict[str, Any]:
    made = pod(name)
    made["metadata"]["labels"] = labels
    return made


async def test_pages_are_of_one_moment(client: Client) -> None:
    for name in "abcde":
        await client.create(PODS, pod(name))
    first = await client.get(f"{PODS}?limit=2")
    token, version = first["metadata"]["continue"], first["metadata"]["resourceVersion"]
    assert first["metadata"]["remainingItemCount"] == 3
    # What happens between the pages is not seen in them.
    await client.delete(f"{PODS}/c")
    await client.create(PODS, pod("bb"))
    await client.patch(f"{PODS}/d", {"metadata": {"labels": {"new": "1"}}})

    second = await client.get(f"{PODS}?limit=2&continue={quote(token)}")
    third = await client.get(f"{PODS}?limit=2&continue={quote(second['metadata']['continue'])}")

    assert [*names(first), *names(second), *names(third)] == ["a", "b", "c", "d", "e"]
    assert {each["metadata"]["resourceVersion"] for each in (first, second, third)} == {version}
    assert "labels" not in second["items"][1]["metadata"]
    assert "continue" not in third["metadata"]
    assert names(await client.get(PODS)) == ["a", "b", "bb", "d", "e"]
    exact = await client.get(f"{PODS}?resourceVersionMatch=Exact&resourceVersion={version}")
    assert names(exact) == ["a", "b", "c", "d", "e"]


async def test_a_page_of_a_forgotten_moment_is_gone() -> None:
    async with served(ServerSettings(tls=False, history_limit=4)) as client:
        for name in "abc":
            await client.create(PODS, pod(name))
        first = await client.get(f"{PODS}?limit=1")
        for value in range(10):
            await client.patch(f"{PODS}/a", {"metadata": {"labels": {"n": str(value)}}})

        token = quote(first["metadata"]["continue"])
        status = await client.refused(410, "GET", f"{PODS}?limit=1&continue={token}")

    assert status["reason"] == "Expired"


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("", ["a", "b", "c"]),
        ("tier=front", ["a"]),
        ("tier==front", ["a"]),
        ("tier!=front", ["b", "c"]),
        ("tier", ["a", "b"]),
        ("!tier", ["c"]),
        ("tier in (front, back)", ["a", "b"]),
        ("tier notin (front)", ["b", "c"]),
        ("tier in (front),size>1", ["a"]),
        ("size<3", ["a"]),
        ("size>5", []),
        ("tier=", []),
    ],
)
async def test_label_selectors(client: Client, selector: str, chosen: list[str]) -> None:
    await client.create(PODS, labelled("a", tier="front", size="2"))
    await client.create(PODS, labelled("b", tier="back", size="5"))
    await client.create(PODS, labelled("c"))

    assert names(await client.get(f"{PODS}?labelSelector={quote(selector)}")) == chosen


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("metadata.name=a", ["a"]),
        ("metadata.namespace=default", ["a", "b"]),
        ("spec.nodeName=n", ["b"]),
        ("spec.nodeName!=n", ["a"]),
        ("spec.nodeName=,status.phase=Pending", ["a"]),
        ("spec.schedulerName=default-scheduler", ["a", "b"]),
        ("spec.hostNetwork=false", ["a", "b"]),
        ("status.phase!=Pending", []),
    ],
)
async def test_field_selectors(client: Client, selector: str, chosen: list[str]) -> None:
    await client.create(PODS, pod("a"))
    await client.create(PODS, pod("b", nodeName="n"))

    assert names(await client.get(f"{PODS}?fieldSelector={quote(selector)}")) == chosen


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("source=kubelet", ["older"]),
        ("source=default-scheduler", ["newer"]),
        ("source=", ["bare"]),
        ("source!=kubelet", ["bare", "newer"]),
    ],
)
async def test_events_are_selected_by_who_reports_them(
    client: Client, selector: str, chosen: list[str]
) -> None:
    """Events of the newer form have no source but a reporting controller."""
    older = "/api/v1/namespaces/default/events"
    newer = "/apis/events.k8s.io/v1/namespaces/default/events"
    about = {"kind": "Pod", "name": "a", "namespace": "default"}
    await client.create(
        older,
        {
            "metadata": {"name": "older"},
            "involvedObject": about,
            "source": {"component": "kubelet"},
            "reportingComponent": "another",
        },
    )
    await client.create(older, {"metadata": {"name": "bare"}, "involvedObject": about})
    scheduler = {"reportingController": "default-scheduler", "regarding": about}
    await client.create(newer, {"metadata": {"name": "newer"}, **scheduler})

    assert names(await client.get(f"{older}?fieldSelector={quote(selector)}")) == chosen


@pytest.mark.parametrize(
    ("query", "code", "told"),
    [
        ("labelSelector=a%20in%20(", 400, "unable to parse requirement"),
        ("labelSelector=-a", 400, "unable to parse requirement"),
        ("labelSelector=a=b%20c", 400, "unable to parse requirement"),
        ("fieldSelector=spec.foo=1", 400, "field label not supported: spec.foo"),
        ("fieldSelector=nonsense", 400, "invalid field selector"),
        ("limit=x", 400, "invalid value for limit"),
        ("limit=1%202", 400, "invalid value for limit"),
        ("timeoutSeconds=x", 400, "invalid value for timeoutSeconds"),
        ("continue=zzz", 400, "continue key is not valid"),
        ("resourceVersion=abc", 400, "invalid resource version"),
        ("resourceVersion=99999", 504, "Too large resource version"),
        ("resourceVersionMatch=Exact", 422, "forbidden unless resourceVersion is provided"),
        ("resourceVersionMatch=Odd&resourceVersion=1", 422, 'Unsupported value: "Odd"'),
        ("resourceVersionMatch=Exact&resourceVersion=0", 422, 'forbidden for resourceVersion "0"'),
        (
            "resourceVersionMatch=Exact&resourceVersion=1&continue=a",
            422,
            "forbidden when continue is provided",
        ),
        ("sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"),
        ("watch=1&sendInitialEvents=true", 422, "resourceVersionMatch to NotOlderThan"),
        (
            "watch=1&resourceVersionMatch=NotOlderThan",
            422,
            "forbidden for watch unless sendInitialEvents",
        ),
        (
            "watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&resourceVersion=99999",
            504,
            "Too large resource version",
        ),
    ],
)
async def test_lists_that_make_no_sense(client: Client, query: str, code: int, told: str) -> None:
    assert told in (await client.refused(code, "GET", f"{PODS}?{query}"))["message"]


async def test_namespaces_part_objects(client: Client) -> None:
    await client.create("/api/v1/namespaces", {"metadata": {"name": "default-2"}})
    await client.create(PODS, pod("a"))
    await client.create("/api/v1/namespaces/default-2/pods", pod("b"))

    assert names(await client.get(PODS)) == ["a"]
    assert names(await client.get("/api/v1/namespaces/default-2/pods")) == ["b"]
    assert names(await client.get("/api/v1/pods")) == ["b", "a"]


async def test_long_lists_come_whole(client: Client) -> None:
    nodes = client.running.api.kinds["nodes"]
    for number in range(1203):
        client.running.api.create(nodes, "", node(f"n{number:04}"))

    assert names(await client.get(NODES)) == [f"n{number:04}" for number in range(1203)]


async def test_tables_tell_what_people_want_to_know(client: Client) -> None:
    await client.create(PODS, pod("a"))

    table = await client.get(PODS, headers={"Accept": TABLE})

    columns = [each["name"] for each in table["columnDefinitions"]]
    assert columns[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert table["rows"][0]["cells"][:4] == ["a", "0/1", "Pending", "0"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_every_stored_kind_has_a_table(client: Client) -> None:
    for kind in client.running.api.kinds:
        if "watch" in kind.verbs:
            root = f"/apis/{kind.group}" if kind.group else "/api"
            path = f"{root}/{kind.version}/{kind.plural}"
            table = await client.get(path, headers={"Accept": TABLE})
            assert table["kind"] == "Table"


async def test_metadata_alone(client: Client) -> None:
    made = await client.create(PODS, pod("a"))

    listed = await client.get(PODS, headers={"Accept": PARTIAL})

    assert listed["kind"] == "PartialObjectMetadataList"
    assert listed["items"][0]["metadata"] == made["metadata"]
    assert "spec" not in listed["items"][0]
