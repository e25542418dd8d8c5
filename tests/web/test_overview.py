"""Who uses what, as the page reads it."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Self

import msgspec
import numpy as np
import pytest

from moorage.cluster import HandleRegistry, NodeView, View
from moorage.engine.explain import finish
from moorage.framework.plugin import NodeFilter, PreEnqueue
from moorage.framework.sections import Cell, Section, ShowSection
from moorage.objects.coexist import ANNOTATION, DAEMONSET_AND_STATIC_PODS, LIMIT_LABEL
from moorage.objects.meta import Condition
from moorage.objects.pod import Pod
from moorage.objects.workload import Namespace
from moorage.testing import make_engine
from moorage.web.details import describe_node, describe_pod
from moorage.web.occupants import group_by_pods
from moorage.web.overview import (
    count_devices,
    describe_batching,
    group_nodes,
    list_gangs,
    list_labels,
    list_sections,
    show_section,
)
from tests.builders import node, pod
from tests.device_builders import resource_slice
from tests.engine.driver import Driver, driver
from tests.engine.gangs import drive_gangs, gang, members
from tests.extended_fakes import SLOTS, SlotsHandle, status, using
from tests.patience import open_session
from tests.web.serving import serving
from tests.web.test_picture import finished


def owned(name: str, **fields: Any) -> Any:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    return pod(name, metadata={"ownerReferences": [owner]}, **fields)


@pytest.fixture
def driven() -> Driver:
    made = driver(
        node("a", cpu=4, labels={"zone": "x"}),
        node("b", cpu=4, labels={"zone": "y"}),
        node("c", cpu=4, labels={"zone": "x"}),
        node("d", cpu=4),
        owned("j-1", namespace="shop", cpu=1, node="a"),
        owned("j-2", namespace="shop", cpu=1, node="a"),
        pod("alone", namespace="shop", cpu="500m", node="b"),
        owned("big", namespace="other", cpu=9),
    )
    made.settle()
    return made


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(
            "usage?by=namespace",
            [("shop", 3, 0, {"cpu": 2500}), ("other", 0, 1, {})],
            id="namespaces",
        ),
        pytest.param(
            "usage?by=owner",
            [
                ("job shop/j", 2, 0, {"cpu": 2000}),
                ("job other/j", 0, 1, {}),
                ("pod shop/alone", 1, 0, {"cpu": 500}),
            ],
            id="owners",
        ),
        pytest.param("usage?by=namespace&name=shop", {"a": 2, "b": 1}, id="where a namespace is"),
        pytest.param("usage?by=owner&name=job+shop/j", {"a": 2}, id="where an owner is"),
        pytest.param("usage?by=colour", "by: one of namespace, owner\n", id="something else"),
    ],
)
async def test_usage(driven: Driver, query: str, expected: Any) -> None:
    async with (
        serving(driven.engine) as address,
        open_session() as session,
        session.get(f"{address}api/{query}") as answer,
    ):
        text = await answer.text()

    if isinstance(expected, str):
        assert (answer.status, text) == (400, expected)
    elif isinstance(expected, dict):
        assert msgspec.json.decode(text) == expected
    else:
        found = msgspec.json.decode(text)
        items = [tuple(each.values()) for each in found["items"]]
        assert (found["count"], items) == (len(expected), expected)


def test_labels_that_tell_groups_of_nodes(driven: Driver) -> None:
    """The names of hosts tell nodes apart, so they are none."""
    assert msgspec.json.decode(finished(list_labels(driven.engine))) == [
        {"key": "zone", "values": 2, "nodes": 3}
    ]


def test_nodes_by_label(driven: Driver) -> None:
    found = msgspec.json.decode(finished(group_nodes(driven.engine, "zone")))
    rows, codes = (np.frombuffer(b64decode(found[each]), "<u4") for each in ("rows", "codes"))
    values = [found["values"][code] for code in codes]

    assert dict(zip(rows.tolist(), values, strict=True)) == {0: "x", 1: "y", 2: "x"}


def test_gangs_that_wait_come_first() -> None:
    said = {"type": "PodScheduled", "status": "False", "message": "too few nodes"}
    driven = drive_gangs(
        node("n", cpu=4),
        gang("a-runs", 2),
        *members("a-runs", 2, cpu=1),
        gang("waits", 3),
        *members("waits", 3, cpu=3, status={"conditions": [said]}),
    )
    driven.settle()

    found = msgspec.json.decode(finished(list_gangs(driven.engine)))

    waits, runs = found["items"]
    assert found["count"] == 2
    assert (waits["name"], waits["placed"], waits["waiting"]) == ("default/waits", 0, 3)
    assert (waits["minCount"], waits["isGang"]) == (3, True)
    assert waits["pod"].startswith("default/waits-")
    assert waits["reason"] == "too few nodes"
    assert (runs["name"], runs["placed"], runs["waiting"]) == ("default/a-runs", 2, 0)


def test_a_pod_of_a_gang_says_that_it_waits_with_the_others() -> None:
    said = Condition(type="PodGroupScheduled", status="False", message="one node is short")
    driven = drive_gangs(
        node("n", cpu=4), gang("g", 2, conditions=(said,)), *members("g", 2, cpu=3)
    )
    driven.settle()

    waits = msgspec.json.decode(finish(describe_pod(driven.engine, "default", "g-0", 0.0)) or b"")
    driven.apply(node("m", cpu=4))
    driven.now += 1000.0
    driven.settle()
    runs = msgspec.json.decode(finish(describe_pod(driven.engine, "default", "g-0", 0.0)) or b"")

    gang_text = "pod default/g-0 waits with its gang default/g: 0 of 2 placed, 2 waiting"
    assert waits["headline"] == gang_text
    assert waits["alone"] == "pod default/g-0 would go to n: 1 of 1 nodes take it"
    assert waits["gang"]["message"] == "one node is short"
    assert (runs["alone"], runs["gang"]["placed"]) == ("", 2)
    assert runs["headline"].startswith("pod default/g-0 runs on ")


class Counting(NodeFilter):
    name = "Counting"

    @classmethod
    def create_sharing(cls, args: Any, gates: Mapping[str, bool], handles: HandleRegistry) -> Self:
        handles.register(SLOTS, SlotsHandle)
        return cls()

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return None


def test_who_holds_nodes_by_exclusive_pods() -> None:
    alone = {"annotations": {ANNOTATION: DAEMONSET_AND_STATIC_PODS}}
    driven = driver(
        *(node(f"n{at}", cpu=4, memory="8Gi") for at in range(3)),
        Namespace(name="mpi", labels={LIMIT_LABEL: "2"}),
        *(pod(f"p{at}", namespace="mpi", cpu=1, metadata=alone) for at in range(2)),
        pod("p", namespace="other", cpu=3, metadata=alone),
    )
    driven.settle()

    found = msgspec.json.decode(finished(show_section(driven.engine, "exclusive")))

    mpi, other = found["items"]
    assert mpi[:3] == ["mpi", "2 of 2", 2]
    assert (mpi[3]["cpu"], other[3]["cpu"]) == (6000, 1000)
    assert other[:3] == ["other", 1, 1]
    assert found["isWhole"]
    (title,) = msgspec.json.decode(list_sections(driven.engine))
    assert title == {"name": "exclusive", "title": "Exclusive nodes"}
    assert finished(show_section(driven.engine, "nothing")) == b"null"


def test_a_limit_of_the_configuration_is_told_where_no_label_says_more() -> None:
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "ExclusiveNodeLimits"}]}},
        "pluginConfig": [{"name": "ExclusiveNodeLimits", "args": {"maxNodesPerNamespace": 3}}],
    }
    alone = {"annotations": {ANNOTATION: DAEMONSET_AND_STATIC_PODS}}
    driven = Driver(make_engine(profiles=[profile]))
    driven.apply(node("a"), node("b"), Namespace(name="mpi", labels={LIMIT_LABEL: "2"}))
    driven.apply(*(pod("p", namespace=name, metadata=alone) for name in ("mpi", "other")))
    driven.settle()

    found = msgspec.json.decode(finished(show_section(driven.engine, "exclusive")))
    assert {each[0]: each[1] for each in found["items"]} == {"mpi": "1 of 2", "other": "1 of 3"}


def test_so_many_rows_of_a_plugin_are_listed_and_no_more_are_made() -> None:
    made = []

    class Endless(PreEnqueue, ShowSection):
        name = "Endless"
        section = Section("endless", "Numbers", ("number", "square"), "none")

        def pre_enqueue(self, pod: Pod) -> None:
            return None

        def section_rows(self, nodes: View) -> Iterator[tuple[Cell, ...]]:
            for number in count():
                made.append(number)
                yield str(number), number**2

    driven = driver(plugins=(Endless,))
    found = msgspec.json.decode(finished(show_section(driven.engine, "endless")))

    assert len(found["items"]) == 200
    assert found["items"][3] == ["3", 9]
    assert not found["isWhole"]
    assert len(made) <= 210


def test_a_table_that_breaks_says_so() -> None:
    class Broken(PreEnqueue, ShowSection):
        name = "Broken"
        section = Section("broken", "Broken", ("name",), "none")

        def pre_enqueue(self, pod: Pod) -> None:
            return None

        def section_rows(self, nodes: View) -> Iterator[tuple[Cell, ...]]:
            yield ("first",)
            raise SystemExit("enough")

    driven = driver(plugins=(Broken,))
    found = msgspec.json.decode(finished(show_section(driven.engine, "broken")))

    assert found["items"] == []
    assert 'asking plugin "Broken" for its table' in found["empty"]


def test_devices_and_what_plugins_count() -> None:
    driven = driver(
        node("n"),
        node("m"),
        resource_slice("n", 2),
        using("p", 2, on="n"),
        plugins=(Counting,),
    )
    driven.apply(status("n", 5), status("m", 3))

    found = msgspec.json.decode(finished(count_devices(driven.engine)))

    (counted,) = found["drivers"]
    assert (counted["pools"], counted["devices"], counted["taken"]) == (1, 2, 0)
    assert found["extended"] == [{"type": SLOTS, "nodes": 2, "figures": {"capacity": 8, "used": 2}}]
    about = msgspec.json.decode(describe_node(driven.engine, "n") or b"")
    assert about["extended"] == {SLOTS: {"capacity": 5, "used": 2}}


def test_who_keeps_pods_apart() -> None:
    made = driver(node("a", cpu=8), node("b", cpu=8))
    made.apply(*(owned(f"like-{at}", cpu=1) for at in range(3)), owned("other", cpu=2))
    made.settle()

    (told,) = msgspec.json.decode(describe_batching(made.engine))["items"]

    assert (told["profile"], told["decisions"], told["alike"]) == ("default-scheduler", 4, 2)
    assert told["byBatch"] + told["byClass"] <= 2
    assert {each["plugin"]: each["pods"] for each in told["apart"]}["NodeResourcesFit"] == 1


async def test_who_requests_most_of_each_node(driven: Driver) -> None:
    driven.apply(
        pod("z", namespace="ads", cpu=3, node="a"),
        pod("y", namespace="ads", node="d"),
        pod("x", namespace="shop", node="d"),
        pod("w", namespace="shop", cpu=1, node="nowhere"),
    )

    told = msgspec.json.decode(finished(group_by_pods(driven.engine, "namespace", "cpu")))

    rows = [driven.engine.cluster.nodes.name(row) for row in _column(told["rows"], "<u4")]
    names = [told["values"][code] for code in _column(told["codes"], "<u4")]
    shares, counts = _column(told["shares"], "<u2"), _column(told["counts"], "<u4")
    assert sorted(zip(rows, names, shares, counts, strict=True)) == [
        ("a", "ads", 600, 2),
        ("b", "shop", 1000, 1),
        # Nobody requests any of it: pods are counted, and among equals the first name is taken.
        ("d", "ads", 500, 2),
    ]


def test_without_pods_no_node_has_occupants() -> None:
    made = driver(node("a"))
    told = msgspec.json.decode(finished(group_by_pods(made.engine, "owner", "pods")))
    assert (told["values"], told["rows"]) == ([], "")


def _column(text: str, kind: str) -> list[int]:
    return [int(each) for each in np.frombuffer(b64decode(text), kind)]
