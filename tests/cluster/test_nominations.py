"""Pods that wait for a place on a node, and what they weigh there."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from moorage.cluster import Change, Cluster
from moorage.framework.coexist_ledgers import ALL, EXCLUSIVE_PODS
from moorage.objects.coexist import DAEMONSET_AND_STATIC_PODS
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from tests.builders import cluster, node, pod


def ranked(name: str, priority: int = 0, **asks: int) -> Pod:
    return pod(name, spec={"priority": priority}, **asks)


def weight(of: Cluster, asking: Pod, resource: str = "cpu") -> dict[str, int]:
    found = of.nodes.nominated_weight(asking)
    if found is None:
        return {}
    assert found.requests.array.shape == of.nodes.requested.shape
    column = found.requests.array[of.nodes.resources[resource]]
    return {of.nodes.name(row): int(column[row]) for row in of.nodes.rows if column[row]}


def test_only_pods_of_at_least_the_priority_weigh() -> None:
    made = cluster(node("one"), node("two"))
    made.nominate(ranked("low", 1, cpu=1), "one")
    made.nominate(ranked("mid", 5, cpu=2), "one")
    made.nominate(ranked("top", 9, cpu=4), "two")

    assert weight(made, ranked("p", 0)) == {"one": 3000, "two": 4000}
    assert weight(made, ranked("p", 5)) == {"one": 2000, "two": 4000}
    assert weight(made, ranked("p", 6), "pods") == {"two": 1}
    assert weight(made, ranked("p", 10)) == {}


def test_a_pod_does_not_weigh_against_itself() -> None:
    made = cluster(node("one"))
    own = ranked("own", 5, cpu=2)
    made.nominate(own, "one")
    made.nominate(ranked("other", 5, cpu=1), "one")

    assert weight(made, own) == {"one": 1000}
    assert weight(made, own, "pods") == {"one": 1}
    assert weight(made, ranked("else", 5)) == {"one": 3000}


def test_a_nomination_moves_and_ends() -> None:
    made = cluster(node("one"), node("two"))
    own = ranked("own", cpu=2)
    made.nominate(own, "one")
    made.nominate(own, "two")
    assert (made.nodes.nominations.node_of(own), weight(made, ranked("p"))) == (
        "two",
        {"two": 2000},
    )

    made.nominate(own, "")
    assert not made.nodes.nominations
    assert made.nodes.nominated_weight(ranked("p")) is None


def test_a_nomination_waits_for_its_node() -> None:
    made = cluster(node("one"))
    made.nominate(ranked("own", cpu=2), "two")
    assert weight(made, ranked("p")) == {}

    made.put_node(node("two"))
    assert weight(made, ranked("p")) == {"two": 2000}
    made.remove_node("two")
    assert weight(made, ranked("p")) == {}
    made.put_node(node("three"))
    assert weight(made, ranked("p")) == {}
    assert set(made.nodes.nominations.on("two")) == {"default/own"}


def test_resources_and_rows_may_come_later() -> None:
    made = cluster(node("n0"))
    made.nominate(ranked("own", cpu=1), "n0")
    for at in range(1, 70):
        made.put_node(node(f"n{at}", **{f"example.com/device{at}": 1}))
    made.nominate(ranked("late", **{"example.com/device7": 3}), "n69")

    assert weight(made, ranked("p")) == {"n0": 1000}
    assert weight(made, ranked("p"), "example.com/device7") == {"n69": 3}


def test_it_is_noted_as_a_change_of_the_row() -> None:
    made = cluster(node("one"))
    before = made.changes.generation
    made.nominate(ranked("own"), "one")

    assert made.changes.since(before) == {0: Change.NOMINATED}


STEPS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["", "n0", "n1", "n2"])), max_size=12
)


@given(STEPS, st.integers(-1, 4))
def test_weights_are_those_of_the_nominated_pods(
    steps: list[tuple[str, str]], priority: int
) -> None:
    made = Cluster()
    for name in ("n0", "n1"):
        made.put_node(Node(name=name))
    pods = {name: ranked(name, at, cpu=at + 1) for at, name in enumerate("abcd")}
    model: dict[str, str] = {}
    for name, to in steps:
        made.nominate(pods[name], to)
        model[name] = to

    for asking in (ranked("else", priority), *pods.values()):
        expected: dict[str, int] = {}
        for name, to in model.items():
            known = to in ("n0", "n1")
            if known and pods[name].priority >= asking.priority and pods[name] is not asking:
                expected[to] = expected.get(to, 0) + 1000 * (pods[name].priority + 1)
        assert weight(made, asking) == expected


@given(STEPS)
def test_exclusive_pods_are_counted_while_they_are_nominated(steps: list[tuple[str, str]]) -> None:
    made = cluster(node("n0"), node("n1"))
    policies: dict[str, dict[str, str]] = {"a": {"coexistPolicy": DAEMONSET_AND_STATIC_PODS}}
    pods = {name: pod(name, spec=policies.get(name, {})) for name in "abcd"}
    model: dict[str, str] = {}
    for name, to in steps:
        made.nominate(pods[name], to)
        model[name] = to

        row = made.nodes.row(model.get("a", ""))
        expected = {} if row is None else {row: 1}
        assert made.nodes.nominated(EXCLUSIVE_PODS).of(ALL) == expected
