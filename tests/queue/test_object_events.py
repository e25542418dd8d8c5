"""Which events a change amounts to."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.framework.wakeups import Action, Resource
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.queue.object_events import make_event, node_events, pod_events
from tests.builders import node, pod

TAINT = {"key": "k", "effect": "NoSchedule"}


def labels(events: tuple[Any, ...]) -> list[str]:
    return [event.label for event in events]


def sized(requested: int, granted: int) -> Pod:
    status = {
        "containerStatuses": [
            {"name": "main", "resources": {"requests": {"cpu": str(granted)}}},
        ]
    }
    return pod(cpu=requested, status=status)


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        pytest.param(pod(), pod(), ["Update"], id="nothing"),
        pytest.param(pod(), pod(labels={"a": "b"}), ["UpdatePodLabel"], id="labels"),
        pytest.param(pod(cpu=2), pod(cpu=1), ["UpdatePodScaleDown"], id="a lower request"),
        pytest.param(pod(cpu=1), pod(), ["UpdatePodScaleDown"], id="a request that is gone"),
        pytest.param(pod(cpu=1), pod(cpu=2, memory=1), ["Update"], id="higher requests"),
        pytest.param(sized(2, 2), sized(1, 2), ["Update"], id="what was granted still counts"),
        pytest.param(sized(1, 2), sized(1, 1), ["UpdatePodScaleDown"], id="until it is not"),
        pytest.param(
            pod(spec={"schedulingGates": [{"name": "a"}]}),
            pod(),
            ["UpdatePodSchedulingGatesEliminated"],
            id="the last gate is gone",
        ),
        pytest.param(
            pod(spec={"schedulingGates": [{"name": "a"}, {"name": "b"}]}),
            pod(spec={"schedulingGates": [{"name": "a"}]}),
            ["Update"],
            id="one of two gates is gone",
        ),
        pytest.param(
            pod(),
            pod(spec={"tolerations": [{"operator": "Exists"}]}),
            ["UpdatePodToleration"],
            id="tolerations",
        ),
        pytest.param(
            pod(cpu=2, spec={"schedulingGates": [{"name": "a"}]}),
            pod(cpu=1, labels={"a": "b"}, spec={"tolerations": [{"operator": "Exists"}]}),
            [
                "UpdatePodLabel",
                "UpdatePodScaleDown",
                "UpdatePodSchedulingGatesEliminated",
                "UpdatePodToleration",
            ],
            id="all, in order",
        ),
    ],
)
def test_pod_events(old: Pod, new: Pod, events: list[str]) -> None:
    assert labels(pod_events(old, new, True)) == [f"AssignedPod{each}" for each in events]
    assert labels(pod_events(old, new, False)) == [f"UnschedulablePod{each}" for each in events]


def condition(status: str, reason: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status, "reason": reason}]}


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        pytest.param(node(), node(), [], id="nothing"),
        pytest.param(node(), node(spec={"unschedulable": True}), [], id="cordoned"),
        pytest.param(
            node(spec={"unschedulable": True}), node(), ["UpdateNodeTaint"], id="uncordoned"
        ),
        pytest.param(node(cpu=1), node(cpu=2), ["UpdateNodeAllocatable"], id="allocatable"),
        pytest.param(node(pods=1), node(pods=2), ["UpdateNodeAllocatable"], id="pods"),
        pytest.param(node(), node(labels={"a": "b"}), ["UpdateNodeLabel"], id="labels"),
        pytest.param(node(), node(spec={"taints": [TAINT]}), ["UpdateNodeTaint"], id="taints"),
        pytest.param(
            node(status=condition("True")),
            node(status=condition("False")),
            ["UpdateNodeCondition"],
            id="a condition",
        ),
        pytest.param(
            node(status=condition("True", "a")),
            node(status=condition("True", "b")),
            [],
            id="why a condition holds",
        ),
        pytest.param(
            node(),
            node(status={"declaredFeatures": ["a"]}),
            ["UpdateNodeDeclaredFeature"],
            id="features",
        ),
        pytest.param(
            Node(name="n", unschedulable=True),
            Node(
                name="n",
                labels={"a": "b"},
                annotations={"a": "b"},
                taints=node(spec={"taints": [TAINT]}).taints,
                allocatable=(("cpu", 1),),
                conditions=node(status=condition("True")).conditions,
                declared_features=frozenset({"a"}),
            ),
            [
                "UpdateNodeTaint",
                "UpdateNodeAllocatable",
                "UpdateNodeLabel",
                "UpdateNodeTaint",
                "UpdateNodeCondition",
                "UpdateNodeAnnotation",
                "UpdateNodeDeclaredFeature",
            ],
            id="all, in order",
        ),
    ],
)
def test_node_events(old: Node, new: Node, events: list[str]) -> None:
    assert labels(node_events(old, new)) == [f"Node{each}" for each in events]


def test_labels_of_other_kinds() -> None:
    events = (
        make_event(Resource.CSI_NODE, Action.ADD),
        make_event(Resource.STORAGE_CLASS, Action.UPDATE),
        make_event(Resource.NODE, Action.DELETE),
    )

    assert labels(events) == [
        "storage.k8s.io/CSINodeAdd",
        "storage.k8s.io/StorageClassUpdate",
        "NodeDelete",
    ]
