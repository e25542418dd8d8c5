"""NodeResourcesFit reads devices, also in a profile without DynamicResources."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from moorage.config import Configuration
from moorage.engine.actions import WriteClaims
from moorage.engine.events import Applied
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.device_builders import claim, device_class, holding, resource_slice, result
from tests.exactness.four_ways import configuration, profile
from tests.exactness.test_traps import Told

GPU = "example.com/gpu"
SERVED = device_class(extendedResourceName=GPU)


def alone(strategy: str = "LeastAllocated") -> Configuration:
    """Nodes are scored by GPUs alone, and DynamicResources takes no part."""
    scoring = {"type": strategy, "resources": [{"name": GPU, "weight": 1}]}
    given = {"name": "NodeResourcesFit", "args": {"scoringStrategy": scoring}}
    plugins = {
        "multiPoint": {"disabled": [{"name": "DynamicResources"}]},
        "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]},
    }
    return configuration(profile(plugins=plugins, pluginConfig=[given]))


def asking(count: int, prefix: str = "p") -> list[Pod]:
    return [pod(f"{prefix}{at}", gpu=1) for at in range(count)]


def test_pods_that_a_new_class_serves_are_placed() -> None:
    told = Told(node("a"), node("b"), node("c"), using=alone())
    pods = asking(6)
    assert set(told.places(*pods).values()) == {None}

    told.apply(SERVED)
    placed = told.places(*asking(6, "later"))

    told.now += 600.0
    assert None not in placed.values()


def test_pods_are_placed_no_longer_when_the_class_is_gone() -> None:
    told = Told(node("a"), node("b"), SERVED, using=alone())
    assert None not in told.places(*asking(2)).values()

    told.remove(SERVED)

    assert set(told.places(*asking(2, "later")).values()) == {None}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(resource_slice("b", 9), id="devices are published"),
        pytest.param(resource_slice("b", 9, allNodes=True), id="devices for all nodes"),
        pytest.param(holding("taken", result("a", "gpu-0"), result("a", "gpu-1")), id="taken"),
        pytest.param(node("a", gpu=1), id="a node of its own"),
    ],
)
def test_what_changes_about_devices_changes_scores(change: Any) -> None:
    """The engines differ if one of them does not see it."""
    told = Told(*(node(name) for name in "abc"), SERVED, using=alone())
    told.apply(resource_slice("a", 3), resource_slice("b", 1))
    told.places(*asking(2))

    told.apply(change)

    assert None not in told.places(*asking(4, "later")).values()


def test_devices_tell_nodes_with_equal_figures_apart() -> None:
    """A node that is full by its devices is not taken for one that is empty."""
    told = Told(*(node(name) for name in "abcd"), SERVED, using=alone("MostAllocated"))
    told.apply(resource_slice("a", 2), resource_slice("b", 4), resource_slice("c", 8))

    placed: Counter[str | None] = Counter()
    for turn in range(6):
        placed.update(told.places(*asking(3, f"t{turn}-")).values())
        told.apply(holding(f"c{turn}", result("c", f"gpu-{turn}")))

    assert None not in placed


def claiming(name: str, **status: Any) -> tuple[Any, Pod]:
    """A pod of one template, and its own claim."""
    owner = {"kind": "Pod", "name": name, "uid": f"default/{name}", "controller": True}
    made = [{"name": "gpu", "resourceClaimName": name}]
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
    told = {"resourceClaimStatuses": made, **status}
    return claim(name, metadata={"ownerReferences": [owner]}), pod(name, spec=spec, status=told)


def test_the_devices_of_a_nominated_pod_are_kept_from_its_like() -> None:
    """Also if what was prepared for the nominated pod itself serves the others."""
    freeing = {"name": "DynamicResources", "args": {"preemptDevices": True}}
    told = Told(using=configuration(profile(pluginConfig=[freeing])))
    told.apply(node("a", cpu=64), node("b"), device_class(), *claiming("first"))
    told.ways.step(1.0, 1)

    told.apply(claiming("first", nominatedNodeName="a")[1], *claiming("like"))
    told.ways.handle([Applied(resource_slice(name)) for name in "ab"], 1.1)
    actions = told.ways.step(1.1, 1)

    written = [each for each in actions if isinstance(each, WriteClaims)]
    assert [(each.pod.name, each.node) for each in written] == [("like", "b")]
