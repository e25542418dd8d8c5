"""The cluster without HTTP, as controllers in the same process use it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.embedded.cluster import Chosen
from mooring.embedded.errors import Refused
from mooring.embedded.options import Delete
from mooring.embedded.quantities import canonical
from mooring.objects.quantity import Quantity
from tests.embedded.serving import Client, node, pod


async def test_objects_come_and_go(client: Client) -> None:
    cluster = client.running.cluster
    cluster.create("nodes", node("n"))
    made = cluster.create("pods", pod("a"), "default")
    assert cluster.get("pods", "a", "default") == made
    assert cluster.find("pods", "b", "default") is None

    cluster.bind("a", "n")
    cluster.change_status("pods", "a", lambda status: status.update(phase="Running"), "default")
    cluster.change("nodes", "n", lambda item: item["spec"].update(unschedulable=True))

    changed = cluster.get("pods", "a", "default")
    assert (changed["spec"]["nodeName"], changed["status"]["phase"]) == ("n", "Running")
    assert cluster.get("nodes", "n")["spec"] == {"unschedulable": True}
    with pytest.raises(Refused) as refused:
        cluster.update("pods", made)
    assert refused.value.reason == "Conflict"
    assert cluster.delete("pods", "a", "default") is False
    assert cluster.delete("pods", "a", "default", Delete(grace_seconds=0)) is True


async def test_everyone_who_listens_is_told(client: Client) -> None:
    told: list[tuple[str, str]] = []
    store = client.running.api.store
    store.listen("pods", lambda change: told.append(("first", change.after.name)))
    store.listen("pods", lambda change: told.append(("second", change.after.name)))

    client.running.cluster.create("pods", pod("a"), "default")
    client.running.cluster.create("nodes", node("n"))

    assert told == [("first", "a"), ("second", "a")]


async def test_what_is_handed_out_is_the_callers_own(client: Client) -> None:
    cluster = client.running.cluster
    cluster.create("pods", pod("a"), "default")

    cluster.get("pods", "a", "default")["spec"]["nodeName"] = "somewhere"

    assert "nodeName" not in cluster.get("pods", "a", "default")["spec"]


async def test_a_list_and_the_watch_after_it(client: Client) -> None:
    cluster = client.running.cluster
    waiting = Chosen("pods", fields="spec.nodeName=")
    cluster.create("pods", pod("a"), "default")
    entries, version = cluster.select(waiting)
    assert [each.name for each in entries] == ["a"]

    watch = cluster.watch(waiting, version)
    cluster.create("pods", pod("b"), "default")
    cluster.bind("a", "n")
    told = [(each.type, each.entry.name) for each in await anext(watch)]
    later = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    cluster.evict("b")

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
