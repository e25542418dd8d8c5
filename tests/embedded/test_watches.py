"""Watches tell everything after their version, once, in order, and end when they should."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, strategies as st

from moorage.embedded.api.kind import ServedKinds
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.api.request_options import DeleteOptions
from moorage.embedded.kinds.catalogue import catalogue
from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.server import ServerSettings, make_initial_objects
from moorage.embedded.store.object_store import ObjectStore
from moorage.embedded.store.queries import Selection, TableWatch, list_entries, read_labels
from tests.embedded.serving import PODS, Client, pod, served
from tests.patience import PATIENCE_SECONDS, until_true


async def test_a_watch_need_not_tell_what_is_there(client: Client) -> None:
    await client.create(PODS, pod("a"))
    query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    async with client.watch(f"{PODS}?{query}") as events:
        await client.create(PODS, pod("b"))

        assert (await anext(events))["object"]["metadata"]["name"] == "b"


async def test_initial_events_end_with_a_bookmark(client: Client) -> None:
    await client.create(PODS, pod("a"))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    async with client.watch(f"{PODS}?{query}&allowWatchBookmarks=true") as events:
        first, mark = await anext(events), await anext(events)
        await client.create(PODS, pod("b"))
        after = await anext(events)

    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    version = first["object"]["metadata"]["resourceVersion"]
    assert mark["object"]["metadata"]["resourceVersion"] == version
    assert (after["type"], after["object"]["metadata"]["name"]) == ("ADDED", "b")


async def test_a_watch_without_a_version_starts_with_what_is_there(client: Client) -> None:
    await client.create(PODS, pod("a"))
    async with client.watch(f"{PODS}?watch=1") as events:
        assert (await anext(events))["type"] == "ADDED"


async def test_quiet_watches_tell_how_far_they_are() -> None:
    async with served(ServerSettings(tls=False, bookmark_seconds=0.02)) as client:
        nodes = client.running.api.kinds["nodes"]
        start = (await client.get(PODS))["metadata"]["resourceVersion"]
        path = f"{PODS}?watch=1&resourceVersion={start}&allowWatchBookmarks=true"
        async with client.watch(path) as events:
            entry = client.running.api.create(nodes, "", {"metadata": {"name": "n"}})
            mark = await anext(events)
            while mark["object"]["metadata"]["resourceVersion"] != str(entry.version):
                mark = await anext(events)

    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["kind"] == "Pod"


async def test_an_object_that_is_selected_no_more_is_gone(client: Client) -> None:
    made = pod("a")
    made["metadata"]["labels"] = {"app": "x"}
    version = (await client.get(PODS))["metadata"]["resourceVersion"]
    async with client.watch(f"{PODS}?watch=1&labelSelector=app=x&resourceVersion={version}") as on:
        await client.create(PODS, made)
        await client.patch(f"{PODS}/a", {"metadata": {"labels": {"app": "y"}}})
        await client.patch(f"{PODS}/a", {"metadata": {"annotations": {"unseen": "1"}}})
        await client.patch(f"{PODS}/a", {"metadata": {"labels": {"app": "x"}}})
        seen = [await anext(on) for _ in range(3)]

    assert [each["type"] for each in seen] == ["ADDED", "DELETED", "ADDED"]
    # As it was when it was still selected, at the version that changed that.
    assert seen[1]["object"]["metadata"]["labels"] == {"app": "x"}
    versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in seen]
    assert versions == sorted(set(versions))


async def test_who_is_too_far_behind_must_list_again() -> None:
    async with served(ServerSettings(tls=False, history_limit=4)) as client:
        made = await client.create(PODS, pod("a"))
        version = made["metadata"]["resourceVersion"]
        for value in range(10):
            await client.patch(f"{PODS}/a", {"metadata": {"labels": {"n": str(value)}}})

        path = f"{PODS}?watch=1&resourceVersion={version}"
        status = await client.refused(410, "GET", path)
        future = await client.refused(410, "GET", f"{PODS}?watch=1&resourceVersion=999999")

    assert status["reason"] == future["reason"] == "Expired"


async def test_a_watch_that_falls_behind_is_told_so() -> None:
    async with served(ServerSettings(tls=False, history_limit=4)) as client:
        api, pods = client.running.api, client.running.api.kinds["pods"]
        version = (await client.get(PODS))["metadata"]["resourceVersion"]
        async with client.watch(f"{PODS}?watch=1&resourceVersion={version}") as events:
            # No await in between, so that the watch has no chance to keep up.
            for number in range(10):
                api.create(pods, "default", pod(f"p{number}"))
            told = [each async for each in events]

    assert told[-1]["type"] == "ERROR"
    assert told[-1]["object"]["code"] == 410


async def test_a_watch_ends_when_its_time_is_up(client: Client) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with client.watch(f"{PODS}?watch=1&timeoutSeconds=1") as events:
            assert [each async for each in events] == []


async def test_a_quiet_watch_ends_with_its_client(client: Client) -> None:
    table = client.running.api.store.table("pods")
    async with client.watch(f"{PODS}?watch=1"):
        await until_true(lambda: len(table.waiting) == 1)

    await until_true(lambda: not table.waiting)


async def test_a_watch_of_one_object(client: Client) -> None:
    await client.create(PODS, pod("a"))
    await client.create(PODS, pod("b"))
    async with client.watch(f"{PODS}?watch=1&fieldSelector=metadata.name=b") as events:
        assert (await anext(events))["object"]["metadata"]["name"] == "b"
    async with client.watch(f"{PODS}/b?watch=1") as events:
        assert (await anext(events))["object"]["metadata"]["name"] == "b"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "label", "touch", "delete"]),
        st.sampled_from("abcd"),
        st.sampled_from(["x", "y"]),
    ),
    max_size=40,
)


def _do(api: ObjectApi, step: tuple[str, str, str]) -> None:
    verb, name, value = step
    maps = api.kinds["configmaps"]
    item: dict[str, Any] = {"metadata": {"name": name, "labels": {"app": value}}}
    try:
        if verb == "create":
            api.create(maps, "default", item)
        elif verb == "delete":
            api.delete(maps, "default", name, DeleteOptions())
        else:
            stored = api.get(maps, "default", name).object
            if verb == "label":
                stored["metadata"]["labels"] = {"app": value}
            else:
                stored["data"] = {"v": value}
            api.update(maps, "default", name, stored)
    except RequestRefused as refusal:
        if refusal.code not in (404, 409):
            raise


@given(before=STEPS, after=STEPS, selector=st.sampled_from(["", "app=x", "app!=x"]), cut=st.data())
def test_a_list_and_its_watch_add_up_to_a_later_list(
    before: list[tuple[str, str, str]],
    after: list[tuple[str, str, str]],
    selector: str,
    cut: st.DataObject,
) -> None:
    """The law that every client lives by, whatever it selects and however often it looks."""
    api = ObjectApi(ObjectStore(), ServedKinds(catalogue()))
    make_initial_objects(api)
    maps, chosen = api.kinds["configmaps"], Selection("default", *read_labels(selector))
    for step in before:
        _do(api, step)
    listed = list_entries(api.store, maps.table, chosen)
    state = {entry.key: entry.body for entry in listed.entries}
    watch = TableWatch(api.store, maps.table, chosen, listed.version)
    for step in after:
        _do(api, step)
        for event in watch.ready() if cut.draw(st.booleans()) else ():
            _follow(state, event)
    for event in watch.ready():
        _follow(state, event)

    later = list_entries(api.store, maps.table, chosen)
    assert state == {entry.key: entry.body for entry in later.entries}
    again = api.store.table(maps.table).at(listed.version)
    assert {key: each.body for key, each in again.items() if chosen.matches(each)} == {
        entry.key: entry.body for entry in listed.entries
    }


def _follow(state: dict[str, bytes], event: Any) -> None:
    assert (event.type == "ADDED") is (event.entry.key not in state)
    assert event.entry.object["metadata"]["resourceVersion"] == str(event.version)
    if event.type == "DELETED":
        del state[event.entry.key]
    else:
        state[event.entry.key] = event.entry.body
