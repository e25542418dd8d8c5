"""What is kept of labels and taints is forgotten when these change, and only then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage.cluster import Cluster
from moorage.cluster.derived import NodeDerived
from tests.builders import cluster, node, pod

TAINTED = {"taints": [{"key": "k", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(
    ("change", "forgets"),
    [
        pytest.param(lambda made: made.put_node(node("one", labels={"a": "b"})), True, id="labels"),
        pytest.param(lambda made: made.put_node(node("one", spec=TAINTED)), True, id="taints"),
        pytest.param(lambda made: made.put_node(node("two")), True, id="a node comes"),
        pytest.param(lambda made: made.remove_node("one"), True, id="a node goes"),
        pytest.param(lambda made: made.put_node(node("one", cpu=9)), False, id="room"),
        pytest.param(lambda made: made.put_pod(pod(node="one", cpu=1)), False, id="a pod comes"),
    ],
)
def test_it_is_forgotten(change: Callable[[Cluster], object], forgets: bool) -> None:
    made = cluster(node("one"))
    assert made.nodes.derived.get("key", lambda: 1) == 1

    change(made)

    assert made.nodes.derived.get("key", lambda: 2) == (2 if forgets else 1)


def test_the_oldest_makes_room() -> None:
    derived = NodeDerived()
    for key in range(NodeDerived.LIMIT + 1):
        derived.get(key, lambda: "first")

    assert derived.get(1, lambda: "second") == "first"
    assert derived.get(0, lambda: "second") == "second"
