"""Comparing what is known with a fresh list."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from moorage.app.cache_comparison import AssumedPods, compare, differences
from moorage.client.api import Api
from moorage.client.api_errors import Unreachable
from moorage.cluster import Cluster
from moorage.engine.events import Bound, Event, PodEnded, Unbound
from tests.app.fake_api import FakeApi, refusal
from tests.builders import node, node_manifest, pod, pod_manifest
from tests.engine.driver import driver


def known() -> Cluster:
    """Two nodes and a pod on each; a third pod is assumed, and nobody else knows of it."""
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.put_node(node(name))
        cluster.put_pod(pod(f"on-{name}", node=name))
    cluster.assume(pod("assumed"), "n1")
    return cluster


LISTED = [pod("on-n1", node="n1"), pod("on-n2", node="n2"), pod("assumed")]


def test_what_is_the_same_is_not_told() -> None:
    finished = pod("done", node="n1", status={"phase": "Succeeded"})

    assert differences(known(), [node("n1"), node("n2")], [*LISTED, finished]) == []


CASES: dict[str, tuple[list[Any], list[Any], str]] = {
    "a node that is not known": (
        [node("n1"), node("n2"), node("n3")],
        LISTED,
        "node n3 exists but is not known",
    ),
    "a node that is gone": ([node("n1")], LISTED, "node n2 is known but does not exist"),
    "a pod that is not known": (
        [node("n1"), node("n2")],
        [*LISTED, pod("new", node="n1")],
        "pod default/new (uid default/new) exists but is not known",
    ),
    "a pod that is gone": (
        [node("n1"), node("n2")],
        LISTED[1:],
        "pod default/on-n1 (uid default/on-n1) is known but does not exist",
    ),
    "a pod that is elsewhere": (
        [node("n1"), node("n2")],
        [pod("on-n1", node="n2"), *LISTED[1:]],
        "pod default/on-n1 is on node n2, not on n1",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_differs_is_told(name: str) -> None:
    nodes, pods, told = CASES[name]

    assert differences(known(), nodes, pods) == [told]


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        pytest.param([], "does not exist", id="gone"),
        pytest.param(
            [pod("assumed", node="n1", status={"phase": "Failed"})], "has ended", id="ended"
        ),
        pytest.param([pod("assumed", node="n1")], "", id="on its node"),
    ],
)
def test_assumed_pods_that_the_api_server_does_not_have(listed: list[Any], told: str) -> None:
    found = differences(known(), [node("n1"), node("n2")], [*LISTED[:2], *listed])

    what = f"pod default/assumed (uid default/assumed) is assumed on node n1 but {told}"
    assert found == ([what] if told else [])


def test_assumed_pods_that_are_elsewhere() -> None:
    found = differences(known(), [node("n1"), node("n2")], [*LISTED[:2], pod("assumed", node="n2")])

    assert found[-1].endswith("is assumed on node n1 but is on node n2")


def test_what_does_not_follow_from_the_objects_is_told() -> None:
    cluster = known()
    cluster._state.columns.requested.array[0, 0] += 1

    (told,) = differences(cluster, [node("n1"), node("n2")], LISTED)

    assert told.startswith("inconsistent: node: n1")


class Pages:
    """An API server that lists one object at a time."""

    def __init__(self, **items: list[Any]) -> None:
        self._items = items

    async def get(self, path: str, params: dict[str, Any]) -> bytes:
        items = self._items[path.rsplit("/", 1)[-1]]
        at = int(params.get("continue", 0))
        meta = {"continue": str(at + 1)} if at + 1 < len(items) else {}
        return msgspec.json.encode({"metadata": meta, "items": items[at : at + 1]})


async def test_all_pages_are_compared(caplog: pytest.LogCaptureFixture) -> None:
    pages = Pages(
        nodes=[node_manifest(name) for name in ("n1", "n2", "n3")],
        pods=[
            pod_manifest("on-n1", node="n1"),
            pod_manifest("on-n2", node="n2"),
            pod_manifest("assumed"),
        ],
    )
    await compare(cast(Api, pages), known())

    first, last = caplog.records
    assert vars(first)["moorage_fields"] == {"difference": "node n3 exists but is not known"}
    assert vars(last)["moorage_fields"] == {"nodes": 3, "pods": 3, "differences": 1}


class Down:
    async def get(self, path: str, params: dict[str, Any]) -> bytes:
        raise Unreachable("refused")


async def test_an_api_server_that_is_down_is_told(caplog: pytest.LogCaptureFixture) -> None:
    await compare(cast(Api, Down()), known())

    assert caplog.messages == ["Could not compare the cache with the API server"]


PATH = "/api/v1/namespaces/default/pods/p"


@pytest.mark.parametrize(
    ("answer", "ends"),
    [
        pytest.param(refusal(404, "NotFound"), [PodEnded("default/p")], id="gone"),
        pytest.param({"metadata": {"uid": "x"}}, [PodEnded("default/p")], id="another"),
        pytest.param(
            pod_manifest("p", node="one", status={"phase": "Succeeded"}),
            [PodEnded("default/p")],
            id="ended",
        ),
        pytest.param(pod_manifest("p"), [Unbound("default/p")], id="without a node"),
        pytest.param(pod_manifest("p", node="one"), [], id="on its node"),
        pytest.param(Unreachable("refused"), [], id="nobody knows"),
    ],
)
async def test_pods_that_are_assumed_for_long_are_asked_for(answer: Any, ends: list[Event]) -> None:
    run = driver(node("one"), pod("p"))
    api, told = FakeApi(), list[Event]()
    assumed = AssumedPods(cast(Api, api), run.engine, told.append)
    run.step()
    await assumed.look()
    await assumed.look()
    assert not api.requests, "what is under way is left alone"
    run.tell(Bound("default/p"))
    await assumed.look()
    assert not api.requests, "a watch has time to tell"
    api.script("get", PATH, answer)

    await assumed.look()

    assert [request.path for request in api.requests] == [PATH]
    assert told == ends


async def test_pods_that_a_watch_told_of_are_not_asked_for() -> None:
    run = driver(node("one"), pod("p"))
    api = FakeApi()
    assumed = AssumedPods(cast(Api, api), run.engine, run.tell)
    run.step()
    run.tell(Bound("default/p"))
    await assumed.look()
    run.apply(pod("p", node="one"))

    await assumed.look()

    assert not api.requests
