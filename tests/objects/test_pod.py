"""What is derived from a pod: its ports, its place, what it holds."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.objects.container import HostPort, ports_conflict
from tests.builders import pod


def port(number: int = 0, **more: Any) -> dict[str, Any]:
    return {"containerPort": 80, "hostPort": number, **more}


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    listening = pod(
        spec={
            "containers": [
                {"name": "a", "ports": [port(443), port(80, hostIP="10.0.0.1"), port()]},
                {"name": "b", "ports": [port(53, protocol="UDP"), port(443)]},
            ],
            "initContainers": [
                {"name": "s", "restartPolicy": "Always", "ports": [port(9000)]},
                {"name": "i", "ports": [port(7)]},
            ],
        }
    )

    assert listening.spec.host_ports == (
        ("0.0.0.0", "TCP", 443),
        ("0.0.0.0", "TCP", 9000),
        ("0.0.0.0", "UDP", 53),
        ("10.0.0.1", "TCP", 80),
    )


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("0.0.0.0", "TCP", 80), ("10.0.0.2", "TCP", 80), True),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "UDP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 81), False),
    ],
)
def test_ports_conflict(one: HostPort, other: HostPort, conflict: bool) -> None:
    assert ports_conflict(one, other) is conflict
    assert ports_conflict(other, one) is conflict


def test_a_place_is_a_node_or_a_nomination() -> None:
    assert not pod().has_place
    assert pod(node="n").has_place
    assert pod(status={"nominatedNodeName": "n"}).has_place


@pytest.mark.parametrize(
    ("phase", "finished"),
    [("", False), ("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True)],
)
def test_finished(phase: str, finished: bool) -> None:
    assert pod(status={"phase": phase}).is_finished is finished


def test_on_a_node_it_is_the_same_pod() -> None:
    waiting = pod("a", cpu=1)
    running = waiting.on("n1")

    assert (running.node_name, waiting.node_name) == ("n1", "")
    assert (running.uid, running.spec) == (waiting.uid, waiting.spec)
    assert running.spec is waiting.spec
    assert running.held == waiting.held
