"""The placed pods as columns: who is less important, and in which order."""

from __future__ import annotations

import numpy as np

from moorage.cluster import Cluster
from moorage.objects.pod import Pod
from tests.builders import cluster, node, pod


def running(name: str, on: str, priority: int = 0, start: int | None = None, **asks: int) -> Pod:
    status = {} if start is None else {"startTime": f"2024-01-01T00:00:{start:02}Z"}
    return pod(name, node=on, spec={"priority": priority}, status=status, **asks)


def lesser(of: Cluster, priority: int, *names: str) -> dict[str, list[str]]:
    rows = np.array([row for name in names if (row := of.nodes.row(name)) is not None], np.intp)
    found = of.nodes.lesser_pods(priority, rows)
    everywhere = of.nodes.lesser_pods(priority, of.nodes.rows)
    assert of.nodes.pod_table().has_below(priority) == bool(len(everywhere.rows))
    assert [len(found.pods(at)) for at in range(len(found.rows))] == found.counts.tolist()
    return {
        of.nodes.name(int(row)): [each.name for each in found.pods(at)]
        for at, row in enumerate(found.rows)
    }


def test_the_most_important_first() -> None:
    made = cluster(
        node("one"),
        running("young", "one", 1, 30),
        running("never", "one", 1),
        running("old", "one", 1, 10),
        running("high", "one", 2, 40),
        running("low", "one", 0, 1),
    )

    assert lesser(made, 3, "one") == {"one": ["high", "old", "young", "never", "low"]}
    assert lesser(made, 2, "one") == {"one": ["old", "young", "never", "low"]}
    assert lesser(made, 0, "one") == {}


def test_equally_important_pods_stay_in_order_of_arrival() -> None:
    made = cluster(node("one"), *(running(name, "one") for name in "cab"))

    assert lesser(made, 1, "one") == {"one": ["c", "a", "b"]}


def test_rows_come_in_the_order_asked_for_and_those_without_are_left_out() -> None:
    made = cluster(
        node("one"), node("two"), node("three"), running("a", "one"), running("b", "three")
    )

    assert list(lesser(made, 1, "three", "two", "one")) == ["three", "one"]
    assert lesser(made, 1, "two") == {}
    assert lesser(made, 1) == {}


def test_many_rows_are_read_as_a_few_are() -> None:
    names = [f"n{at}" for at in range(20)]
    pods = [running(f"p{at}", names[at * 7 % 18], at % 3, at % 60) for at in range(90)]
    made = cluster(*map(node, names), *pods)
    made.remove_pod(pods[0].uid)

    few = [lesser(made, 2, name) for name in reversed(names)]
    assert lesser(made, 2, *reversed(names)) == {
        name: lower for each in few for name, lower in each.items()
    }


def test_it_follows_every_change() -> None:
    made = cluster(node("one"), node("two"))
    assert lesser(made, 9, "one", "two") == {}

    made.put_pod(running("a", "one", 1))
    made.put_pod(running("b", "one", 1))
    assert lesser(made, 9, "one", "two") == {"one": ["a", "b"]}
    made.put_pod(running("b", "one", 1, start=5))
    assert lesser(made, 9, "one", "two") == {"one": ["b", "a"]}
    made.put_pod(running("a", "two", 1))
    made.remove_pod("default/b")
    assert lesser(made, 9, "one", "two") == {"two": ["a"]}
    made.remove_node("two")
    made.put_pod(running("c", "one", 3))
    assert lesser(made, 9, "one") == {"one": ["c"]}
    assert lesser(made, 2, "one") == {}
    made.put_node(node("two"))
    assert lesser(made, 9, "one", "two") == {"one": ["c"], "two": ["a"]}


def test_pods_that_came_since_it_was_last_asked() -> None:
    made = cluster(node("one"), node("two"))
    assert lesser(made, 9, "one", "two") == {}

    for name in "abcd":
        made.put_pod(running(name, "one", 1))
    made.put_pod(running("a", "one", 2))
    made.put_pod(running("c", "one", 1, start=5))
    made.put_pod(running("d", "two", 1))
    made.remove_pod("default/b")
    table = made.nodes.pod_table()
    assert [table.has_below(priority) for priority in (1, 2, 3)] == [False, True, True]
    assert table.count_restarts(2).tolist() == [1, 0]
    assert lesser(made, 2, "one", "two") == {"one": ["c"], "two": ["d"]}
    assert lesser(made, 9, "one", "two") == {"one": ["a", "c"], "two": ["d"]}
    made.remove_pod("default/a")
    assert [table.has_below(priority) for priority in (1, 2, 3)] == [False, True, True]
    made.remove_pod("default/c")
    made.remove_pod("default/d")
    assert not table.has_below(9)


def test_what_each_asks_for() -> None:
    made = cluster(node("one", gpu=8), running("a", "one", 1, cpu=2), running("b", "one", gpu=3))
    found = made.nodes.lesser_pods(9, np.array([0]))

    columns = made.nodes.resources
    assert found.usage.requests.array[columns["cpu"]].tolist() == [2000, 0]
    assert found.usage.requests.array[columns["example.com/gpu"]].tolist() == [0, 3]
    assert found.usage.requests.array[columns["pods"]].tolist() == [1, 1]


def test_a_reused_slot_keeps_nothing_of_the_pod_before() -> None:
    made = cluster(node("one"), running("a", "one", cpu=2))
    lesser(made, 1, "one")
    made.remove_pod("default/a")
    made.put_pod(running("b", "one", memory=5))
    found = made.nodes.lesser_pods(1, np.array([0]))

    assert found.usage.requests.array[made.nodes.resources["cpu"]].tolist() == [0]
    assert found.usage.requests.array[made.nodes.resources["memory"]].tolist() == [5]


def test_resources_that_come_later_have_their_place() -> None:
    made = cluster(node("one"), running("a", "one", cpu=2))
    lesser(made, 1, "one")
    made.put_node(node("two", **{f"example.com/device{at}": 1 for at in range(20)}))
    found = made.nodes.lesser_pods(1, np.array([0]))

    assert len(found.usage.requests.array) == len(made.nodes.requested)


def test_more_pods_than_slots() -> None:
    names = [f"p{at}" for at in range(150)]
    made = cluster(node("one"))
    lesser(made, 1, "one")
    for name in names:
        made.put_pod(running(name, "one"))

    assert lesser(made, 1, "one") == {"one": names}
