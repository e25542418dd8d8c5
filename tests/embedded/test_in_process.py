"""The cluster without HTTP, as controllers in the same process use it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, strategies as st

from moorage.embedded.api.decoding import canonical
from moorage.embedded.api.request_options import DeleteOptions, WriteOptions
from moorage.embedded.kinds.subresources import bind, evict
from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.store.queries import Selection, TableWatch, list_entries, read_fields
from moorage.objects.quantity import Quantity
from tests.embedded.serving import Client, binding, node, pod


async def test_objects_come_and_go(client: Client) -> None:
    api = client.running.api
    pods, nodes = api.kinds["pods"], api.kinds["nodes"]
    api.create(nodes, "", node("n"))
    made = api.create(pods, "default", pod("a")).object
    assert api.get(pods, "default", "a").object == made
    assert api.find(pods, "default", "b") is None

    bind(api, "default", "a", binding("a", "n"), WriteOptions())
    running = {**api.get(pods, "default", "a").object, "status": {"phase": "Running"}}
    api.update_status(pods, "default", "a", running)

    changed = api.get(pods, "default", "a").object
    assert (changed["spec"]["nodeName"], changed["status"]["phase"]) == ("n", "Running")
    with pytest.raises(RequestRefused) as refused:
        api.update(pods, "default", "a", made)
    assert refused.value.reason == "Conflict"
    assert api.delete(pods, "default", "a").gone is False
    assert api.delete(pods, "default", "a", DeleteOptions(grace_seconds=0)).gone is True


async def test_everyone_who_listens_is_told(client: Client) -> None:
    told: list[tuple[str, str]] = []
    api = client.running.api
    api.store.listen("pods", lambda change: told.append(("first", change.after.name)))
    api.store.listen("pods", lambda change: told.append(("second", change.after.name)))

    api.create(api.kinds["pods"], "default", pod("a"))
    api.create(api.kinds["nodes"], "", node("n"))

    assert told == [("first", "a"), ("second", "a")]


async def test_what_is_handed_out_is_the_callers_own(client: Client) -> None:
    api = client.running.api
    pods = api.kinds["pods"]
    api.create(pods, "default", pod("a"))

    api.get(pods, "default", "a").object["spec"]["nodeName"] = "somewhere"

    assert "nodeName" not in api.get(pods, "default", "a").object["spec"]


async def test_a_list_and_the_watch_after_it(client: Client) -> None:
    api = client.running.api
    pods = api.kinds["pods"]
    waiting = Selection(fields=read_fields("spec.nodeName=", pods.position))
    api.create(pods, "default", pod("a"))
    listed = list_entries(api.store, pods.table, waiting)
    assert [each.name for each in listed.entries] == ["a"]

    watch = TableWatch(api.store, pods.table, waiting, listed.version).events()
    api.create(pods, "default", pod("b"))
    bind(api, "default", "a", binding("a", "n"), WriteOptions())
    told = [(each.type, each.entry.name) for each in await anext(watch)]
    later = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    evict(api, "default", "b", {"metadata": {"name": "b"}}, WriteOptions())

    assert told == [("ADDED", "b"), ("DELETED", "a")]
    assert [(each.type, each.entry.name) for each in await later] == [
        ("MODIFIED", "b"),
        ("DELETED", "b"),
    ]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("1", "1"),
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000Mi", "1000Mi"),
        ("512Ki", "512Ki"),
        ("0.5Ki", "512"),
        ("0Gi", "0"),
        ("1000k", "1M"),
        ("1e3", "1e3"),
        ("12e2", "1200"),
        ("100n", "100n"),
        ("-0.1", "-100m"),
        ("+2", "2"),
    ],
)
def test_quantities_are_written_one_way(written: str, kept: str) -> None:
    assert canonical(written) == kept


@given(
    st.decimals(-(10**6), 10**6, places=6, allow_nan=False),
    st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3"]),
)
def test_the_one_way_means_the_same(number: object, suffix: str) -> None:
    text = f"{number}{suffix}"
    kept = canonical(text)

    assert canonical(kept) == kept
    # A binary quantity of 1Ki and more is rounded up to whole units.
    exact, meant = Quantity.parse(text), Quantity.parse(kept)
    assert meant == exact or (suffix.endswith("i") and meant.value == exact.value)
