"""What a kubelet lets in, and what it says otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.hollow.pod_admission import admit
from moorage.framework.kubelet_admission import find_admissions
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.coexisting import DAEMON, MIRRORED, exclusive
from tests.registered import REGISTRY

_LABELLED = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
_IMPOSSIBLE = {"matchExpressions": [{"key": "disk", "operator": "In", "values": []}]}

POLICIES = tuple(find_admissions(REGISTRY).values())


def _port(number: int, name: str = "pod", protocol: str = "TCP") -> Pod:
    port = {"containerPort": 80, "hostPort": number, "protocol": protocol}
    return pod(name, spec={"containers": [{"name": "main", "ports": [port]}]})


def _affinity(*terms: Any) -> Pod:
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return pod(spec={"affinity": {"nodeAffinity": rule}})


def _tainted(effect: str) -> Node:
    return node(spec={"taints": [{"key": "broken", "effect": effect}]})


@pytest.mark.parametrize(
    ("asks", "there", "present", "reason"),
    [
        pytest.param(pod(cpu=4), node(), [], "", id="all of the cpu"),
        pytest.param(pod(cpu=3), node(), [pod("a", cpu=2)], "OutOfcpu", id="cpu"),
        pytest.param(pod(memory="7Gi"), node(), [pod("a", memory="2Gi")], "OutOfmemory", id="mem"),
        pytest.param(pod(), node(pods=1), [pod("a")], "OutOfpods", id="pods"),
        pytest.param(pod(cpu=9), node(pods=0), [], "OutOfpods", id="pods are told first"),
        pytest.param(pod(cpu=9, memory="9Gi"), node(), [], "OutOfcpu", id="cpu before memory"),
        pytest.param(pod(ephemeral="1Gi"), node(), [], "OutOfephemeral-storage", id="disk"),
        pytest.param(pod(gpu=2), node(gpu=1), [], "OutOfexample.com/gpu", id="devices"),
        pytest.param(pod(gpu=2), node(), [], "", id="devices that the node does not know"),
        pytest.param(pod(), node(cpu=0), [], "", id="who asks for nothing gets it"),
        pytest.param(pod(cpu=0), node(cpu=1), [pod("a", cpu=2)], "", id="also when it is overfull"),
        pytest.param(
            pod(spec={"nodeSelector": {"disk": "ssd"}}), node(), [], "NodeAffinity", id="selector"
        ),
        pytest.param(
            pod(spec={"nodeSelector": {"disk": "ssd"}}),
            node(labels={"disk": "ssd"}),
            [],
            "",
            id="selected",
        ),
        pytest.param(_affinity(_LABELLED), node(), [], "NodeAffinity", id="affinity"),
        pytest.param(
            _affinity({}, _LABELLED), node(labels={"disk": "ssd"}), [], "", id="one term is enough"
        ),
        pytest.param(_affinity(_IMPOSSIBLE), node(), [], "NodeAffinity", id="malformed"),
        pytest.param(_affinity({}), node(), [], "NodeAffinity", id="an empty term matches nothing"),
        pytest.param(_port(80), node(), [_port(80, "a")], "NodePorts", id="ports"),
        pytest.param(_port(80), node(), [_port(80, "a", "UDP")], "", id="another protocol"),
        pytest.param(pod(), _tainted("NoExecute"), [], "TaintToleration", id="taint"),
        pytest.param(pod(), _tainted("NoSchedule"), [], "", id="a taint for schedulers only"),
        pytest.param(pod(metadata=MIRRORED), _tainted("NoExecute"), [], "", id="static pods stay"),
        pytest.param(exclusive(), node(), [pod("a")], "CoexistPolicy", id="exclusive"),
        pytest.param(pod(), node(), [exclusive()], "CoexistPolicy", id="beside an exclusive one"),
        pytest.param(exclusive(), node(), [pod("a", metadata=DAEMON)], "", id="a daemon"),
        pytest.param(
            exclusive(cpu=9), node(), [pod("a")], "OutOfcpu", id="resources before the policy"
        ),
    ],
)
def test_admission(asks: Pod, there: Node, present: list[Pod], reason: str) -> None:
    refusal = admit(asks, there, present, POLICIES)

    assert (refusal.reason if refusal else "") == reason


def test_a_kubelet_that_does_not_know_the_policy() -> None:
    assert admit(exclusive(), node(), [pod("a")]) is None


def test_what_is_said() -> None:
    short = admit(pod(cpu="1500m"), node(cpu=2), [pod("a", cpu=1)])
    taken = admit(_port(80), node(), [_port(80, "a")])

    assert short is not None
    assert short.message == (
        "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000"
    )
    assert taken is not None
    assert taken.message == (
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    )
