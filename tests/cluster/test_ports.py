"""Host ports in use."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from moorage.cluster import Cluster
from moorage.cluster.host_ports import HOST_PORTS, find_taken
from moorage.objects.container import HostPort, ports_conflict
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from tests.builders import cluster, node, pod

PORTS = st.tuples(
    st.sampled_from(["0.0.0.0", "10.0.0.1", "10.0.0.2"]),
    st.sampled_from(["TCP", "UDP"]),
    st.sampled_from([80, 443]),
)


def listening(name: str, on: str, *ports: HostPort) -> Pod:
    written = [
        {"hostPort": port, "hostIP": address, "protocol": protocol}
        for address, protocol, port in ports
    ]
    return pod(name, node=on, spec={"containers": [{"name": "main", "ports": written}]})


def taken(of: Cluster, *wanted: HostPort) -> list[bool]:
    rows: list[bool] = find_taken(of.nodes.ledger(HOST_PORTS), wanted)[of.nodes.everything].tolist()
    return rows


WEB: HostPort = ("0.0.0.0", "TCP", 80)


def test_ports_are_counted_per_row() -> None:
    made = cluster(node("one"), node("two"), listening("p", "one", WEB), listening("q", "one", WEB))

    assert taken(made, WEB) == [True, False]
    made.remove_pod("default/p")
    assert taken(made, WEB) == [True, False]
    made.remove_pod("default/q")
    assert taken(made, WEB) == [False, False]
    assert list(made.nodes.ledger(HOST_PORTS)) == []


def test_a_reused_row_has_its_ports_free() -> None:
    made = cluster(node("one"), listening("p", "one", WEB))
    made.remove_node("one")
    made.put_node(node("other"))

    assert taken(made, WEB) == [False]
    made.put_node(node("one"))
    assert taken(made, WEB) == [False, True]


def test_a_port_that_many_hold_can_be_held_on_rows_that_come_later() -> None:
    made = Cluster()
    for at in range(200):
        made.put_node(node(f"n{at}"))
        made.put_pod(listening(f"p{at}", f"n{at}", WEB))

    assert all(taken(made, WEB))
    assert not any(taken(made, ("0.0.0.0", "UDP", 80)))


@given(st.lists(st.lists(PORTS, max_size=2), min_size=1, max_size=5), st.lists(PORTS, max_size=2))
def test_conflicts_are_those_of_single_ports(
    held: list[list[HostPort]], wanted: list[HostPort]
) -> None:
    made = Cluster()
    for at, ports in enumerate(held):
        made.put_node(Node(name=f"n{at}"))
        made.put_pod(listening(f"p{at}", f"n{at}", *ports))

    assert taken(made, *wanted) == [
        any(ports_conflict(one, other) for one in wanted for other in ports) for ports in held
    ]
