"""What the API server would have filled in."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from moorage.objects.meta import ObjectMeta
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.world.defaults import Defaults, PriorityClass, UnknownPriorityClass
from tests.builders import node_manifest, pod_manifest
from tests.simulate.inputs import loaded

NONE = Defaults.of(())
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def priority_class(name: str, value: int, **given: Any) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, **given)


def spec_of(spec: dict[str, Any], defaults: Defaults = NONE) -> Any:
    return defaults.fill("Pod", {"metadata": {"labels": {"v": "1"}}, "spec": spec})["spec"]


@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        ({"limits": {"cpu": "1"}}, {"cpu": "1"}),
        ({"limits": {"cpu": "1"}, "requests": None}, {"cpu": "1"}),
        ({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, {"cpu": "1"}),
        (
            {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
            {"cpu": "1", "memory": "1Gi"},
        ),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_requests_follow_limits(
    field: str, resources: dict[str, Any], requests: dict[str, str]
) -> None:
    filled = spec_of({field: [{"resources": resources}, {}]})

    assert filled[field][0]["resources"]["requests"] == requests
    assert filled[field][1] == {}


def test_pod_level_requests_follow_limits_that_no_container_asks_for() -> None:
    limits = {"cpu": "4", "memory": "8Gi", "hugepages-2Mi": "2Mi", "example.com/gpu": "1"}
    container = {"resources": {"requests": {"cpu": "1"}}}

    filled = spec_of({"resources": {"limits": limits}, "containers": [container]})

    assert filled["resources"]["requests"] == {"memory": "8Gi", "hugepages-2Mi": "2Mi"}


@pytest.mark.parametrize(
    ("host_network", "port", "host_port"),
    [
        (True, {"containerPort": 80}, 80),
        (True, {"containerPort": 80, "hostPort": 0}, 80),
        (True, {"containerPort": 80, "hostPort": 80}, 80),
        (False, {"containerPort": 80}, None),
    ],
)
def test_ports_on_the_host_network(
    host_network: bool, port: dict[str, int], host_port: int | None
) -> None:
    filled = spec_of({"hostNetwork": host_network, "containers": [{"ports": [port]}]})

    assert filled["containers"][0]["ports"][0].get("hostPort") == host_port


@pytest.mark.parametrize(
    ("spec", "priority", "policy"),
    [
        ({}, 5, None),
        ({"priorityClassName": "high"}, 100, "Never"),
        ({"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"}, 100,
         "PreemptLowerPriority"),
        ({"priorityClassName": "high", "priority": 7}, 7, None),
        ({"priority": 0}, 0, None),
        ({"priorityClassName": "system-cluster-critical"}, 2_000_000_000, None),
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000, None),
    ],
)  # fmt: skip
def test_priority_comes_from_the_class(
    spec: dict[str, Any], priority: int, policy: str | None
) -> None:
    defaults = Defaults.of(
        [
            priority_class("high", 100, preemption_policy="Never"),
            priority_class("usual", 5, global_default=True),
            priority_class("also", 6, global_default=True),
        ]
    )

    filled = spec_of(spec, defaults)

    assert (filled["priority"], filled.get("preemptionPolicy")) == (priority, policy)


def test_without_a_class_there_is_no_priority() -> None:
    assert "priority" not in spec_of({})


def test_an_unknown_class_is_refused() -> None:
    with pytest.raises(UnknownPriorityClass, match="gold"):
        spec_of({"priorityClassName": "gold"})


@pytest.mark.parametrize("rule", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize(
    ("field", "operator"), [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")]
)
def test_label_keys_are_merged_into_selectors(rule: str, field: str, operator: str) -> None:
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, field: ["v", "absent"]}
    affinity = {rule: {_REQUIRED: [term], _PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}}

    filled = spec_of({"affinity": affinity})["affinity"][rule]

    merged = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "v", "operator": operator, "values": ["1"]}],
    }
    assert filled[_REQUIRED][0]["labelSelector"] == merged
    assert filled[_PREFERRED][0]["podAffinityTerm"]["labelSelector"] == merged


def test_label_keys_without_a_selector_mean_nothing() -> None:
    affinity = {"podAffinity": {_REQUIRED: [{"matchLabelKeys": ["v"]}]}}

    assert spec_of({"affinity": affinity})["affinity"] == affinity


@pytest.mark.parametrize(
    ("status", "cpu_milli"),
    [
        ({"capacity": {"cpu": "4"}}, 4000),
        ({"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}, 3000),
        ({"capacity": {"cpu": "4"}, "allocatable": None}, 4000),
    ],
)
def test_allocatable_comes_from_capacity(
    tmp_path: Path, status: dict[str, Any], cpu_milli: int
) -> None:
    manifest = node_manifest()
    manifest["status"] = status

    (node,) = loaded(tmp_path, manifest).objects

    assert isinstance(node, Node)
    assert dict(node.allocatable)["cpu"] == cpu_milli


def test_the_namespace_is_default(tmp_path: Path) -> None:
    manifest = pod_manifest()
    del manifest["metadata"]["namespace"]

    (pod,) = loaded(tmp_path, manifest).objects

    assert isinstance(pod, Pod)
    assert pod.namespace == "default"


def test_classes_are_found_wherever_they_are_written(tmp_path: Path) -> None:
    manifest = pod_manifest(spec={"priorityClassName": "high"})
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 100}

    (pod,) = loaded(tmp_path, manifest, {**high, "metadata": {"name": "high"}}).objects

    assert isinstance(pod, Pod)
    assert pod.priority == 100


def test_the_input_is_left_alone() -> None:
    term = {"labelSelector": {}, "matchLabelKeys": ["v"]}
    manifest = pod_manifest(
        labels={"v": "1"},
        spec={
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "containers": [
                {"resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 80}]}
            ],
            "affinity": {"podAffinity": {_REQUIRED: [term]}},
        },
    )
    before = deepcopy(manifest)

    assert NONE.fill("Pod", manifest) != before
    assert manifest == before
