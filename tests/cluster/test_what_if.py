"""What if a pod more or fewer ran on a row: copied rows, and a cluster that is not touched."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from moorage.cluster import Cluster, Nodes, WhatIf, check
from moorage.cluster.host_ports import HOST_PORTS, find_taken
from moorage.cluster.usage import Usage
from moorage.framework.coexist_ledgers import ALL, EXCLUSIVE_PODS, ORDINARY_PODS
from moorage.objects.container import HostPort
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from tests.builders import cluster, node, pod
from tests.strategies import columns_of, nodes, placed_pods, pods

WEB: HostPort = ("0.0.0.0", "TCP", 80)


def listening(name: str, on: str = "", **asks: int) -> Pod:
    ports = [{"name": "main", "ports": [{"hostPort": 80}]}]
    return pod(name, node=on, spec={"containers": ports}, **asks)


def find_taken_rows(of: Nodes, *wanted: HostPort) -> list[bool]:
    taken: list[bool] = find_taken(of.ledger(HOST_PORTS), wanted)[of.everything].tolist()
    return taken


def requested(of: Nodes, name: str) -> dict[str, int]:
    row = of.row(name)
    return {key: int(of.requested[at, row]) for key, at in of.resources.items()}


def test_a_pod_more_counts_on_its_row_only() -> None:
    made = cluster(node("one"), node("two"), pod("p", node="one", cpu=1))
    what_if = WhatIf(made.nodes)
    what_if.add_pod(pod("q", cpu=2, memory=7), 0)

    assert requested(what_if, "one")["cpu"] == 3000
    assert requested(what_if, "one")["pods"] == 2
    assert requested(what_if, "two") == requested(made.nodes, "two")
    assert requested(made.nodes, "one")["cpu"] == 1000
    assert what_if.nonzero_requested[:, 0].tolist() == [3000, 200 * 2**20 + 7]


def test_of_some_rows_the_others_are_not_copied() -> None:
    made = cluster(
        node("one"), node("two"), *(pod(f"p-{on}", node=on, cpu=1) for on in ("one", "two"))
    )
    what_if = WhatIf(made.nodes, np.array([1]))
    what_if.add_pod(pod("q", cpu=2), 1)

    assert requested(what_if, "two") == requested(WhatIf(what_if), "two")
    assert requested(what_if, "two")["cpu"] == 3000
    assert requested(what_if, "one")["cpu"] == 0
    assert requested(made.nodes, "two")["cpu"] == 1000


def test_ports_are_taken_and_freed() -> None:
    made = cluster(node("one"), listening("p", "one"), node("two"))
    what_if = WhatIf(made.nodes)
    what_if.add_pod(listening("q"), 1)
    what_if.remove_pod(listening("p"), 0)

    assert find_taken_rows(what_if, WEB) == [False, True]
    assert find_taken_rows(made.nodes, WEB) == [True, False]


def test_a_port_is_free_once_one_of_its_holders_has_left() -> None:
    made = cluster(node("one"), listening("p", "one"), listening("q", "one"))
    what_if = WhatIf(made.nodes)
    what_if.remove_pod(listening("p"), 0)

    assert find_taken_rows(what_if, WEB) == [False]


def test_of_what_is_itself_what_if() -> None:
    made = cluster(node("one"), listening("p", "one"))
    first = WhatIf(made.nodes)
    first.remove_pod(listening("p"), 0)
    second = WhatIf(first)
    second.add_pod(listening("q", cpu=3), 0)

    assert requested(second, "one")["pods"] == 1
    assert requested(first, "one")["pods"] == 0
    assert all(find_taken_rows(second, WEB))
    assert not any(find_taken_rows(first, WEB))


def test_many_rows_can_be_shifted_at_once() -> None:
    made = cluster(node("one"), node("two"), node("three"))
    what_if = WhatIf(made.nodes)
    for ledger in (EXCLUSIVE_PODS, ORDINARY_PODS):
        made.nodes.ledger(ledger)
    more = Usage.nothing(made._state.columns, 2)
    more.requests.array[what_if.resources["cpu"]] = [5, 7]
    more.counts[:] = [[1, 0], [2, 3]]
    what_if.shift(np.array([2, 0]), more)

    assert what_if.requested[what_if.resources["cpu"], :3].tolist() == [7, 0, 5]
    assert what_if.ledger(EXCLUSIVE_PODS).by_key() == {ALL: {2: 1}}
    assert what_if.ledger(ORDINARY_PODS).by_key() == {ALL: {0: 3, 2: 2}}
    assert not made.nodes.requested.any()
    assert not made.nodes.ledger(ORDINARY_PODS).of(ALL)


@given(st.lists(nodes(), min_size=1, max_size=4, unique_by=lambda n: n.name), st.data())
def test_add_then_remove_is_identity_and_the_cluster_is_untouched(
    given_nodes: list[Node], data: st.DataObject
) -> None:
    made = Cluster()
    for each in given_nodes:
        made.put_node(each)
    for placed in data.draw(placed_pods(tuple(n.name for n in given_nodes))):
        made.put_pod(placed)
    guest = data.draw(pods(name="guest"))
    # Only what is placed or nominated has its columns.
    made.nominate(guest, given_nodes[0].name)
    row = data.draw(st.sampled_from(made.nodes.rows.tolist()))
    before = columns_of(made.nodes)
    held = {port for other in made.nodes.pods(row).values() for port in other.spec.host_ports}

    what_if = WhatIf(made.nodes)
    what_if.add_pod(guest, row)
    added = columns_of(what_if)
    what_if.remove_pod(guest, row)

    assert added != before
    # A port that a pod of the row holds already is freed for both.
    if not held & set(guest.spec.host_ports):
        assert columns_of(what_if) == before
    assert columns_of(made.nodes) == before
    check(made)
