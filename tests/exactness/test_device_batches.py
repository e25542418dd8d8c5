"""Pods with claims made from templates get the same nodes and devices in batches as alone."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.config import Configuration, FeatureGates, default
from moorage.config.kubernetes_versions import VERSIONS
from moorage.engine import Engine
from moorage.engine.classes.classes import ClassSettings
from moorage.engine.classes.statistics import DecisionPath
from moorage.framework.profile import known_plugins
from moorage.objects.device import DeviceTaintRule
from moorage.world import World
from tests.builders import node, pod
from tests.device_builders import (
    claim,
    device,
    device_class,
    request,
    resource_slice,
    taint_rule,
)
from tests.exactness.four_ways import configuration, profile
from tests.registered import REGISTRY

MODELS = ("A100", "L4")
NUMA = "gpu.example.com/numa"
OF_MODEL = 'device.attributes["gpu.example.com"].model == "{}"'


def devices(random: Random, count: int) -> list[dict[str, Any]]:
    made = []
    for at in range(count):
        fields: dict[str, Any] = {
            "attributes": {"model": {"string": random.choice(MODELS)}, "numa": {"int": at % 2}}
        }
        if random.random() < 0.1:
            fields["taints"] = [{"key": "bad", "effect": "NoSchedule"}]
        made.append(device(f"gpu-{at}", **fields))
    return made


def objects(seed: int) -> list[Any]:
    random = Random(seed)
    kind = device_class(extendedResourceName="example.com/gpu")
    made: list[Any] = [kind, device_class("l4", OF_MODEL.format("L4"))]
    for number in range(8):
        name = f"n{number}"
        # A device plugin serves one of them: there no claim is made.
        served = {"gpu": 1} if number == 3 else {}
        labels = {"zone": random.choice("ab")}
        made.append(node(name, cpu=random.choice([4, 8]), labels=labels, **served))
        made.append(resource_slice(name, devices(random, random.randint(0, 4))))
    made.append(resource_slice("net", devices(random, 3), allNodes=True))
    alternatives = [
        {"name": name, "deviceClassName": wanted, "allocationMode": "ExactCount", "count": 1}
        for name, wanted in (("best", "l4"), ("good", "gpu"))
    ]
    templates = [
        ([request()], {}),
        ([request(class_name="l4", count=2)], {}),
        (
            [request("a"), request("b")],
            {"constraints": [{"matchAttribute": "gpu.example.com/numa"}]},
        ),
        ([{"name": "r", "firstAvailable": alternatives}], {}),
    ]
    for number in range(30):
        name = f"p{number}"
        owner = [{"kind": "Pod", "name": name, "uid": f"default/{name}", "controller": True}]
        requests, more = templates[random.choice([0, 0, 1, 2, 3])]
        made.append(claim(name, *requests, metadata={"ownerReferences": owner}, **more))
        spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
        status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]}
        made.append(pod(name, cpu=1, spec=spec, status=status))
        if number % 3 == 0:
            made.append(pod(f"x{number}", cpu=1, gpu=random.choice([1, 1, 2])))
    return made


def place(
    items: list[Any], classes: bool, config: Configuration | None = None, later: Sequence[Any] = ()
) -> tuple[dict[str, Any], int]:
    """Where pods went and what they got, and how many were decided by what is known of others.

    Some objects change later, every few decisions.
    """
    settings = ClassSettings(classes=classes, batches=classes)
    config = config or default(known_plugins(REGISTRY))
    world = World(Engine(config, REGISTRY, settings))
    for each in items:
        world.apply(each, 0.0)
    changes = list(later)
    now = 0.0
    for number in range(80):
        if changes and number % 2:
            world.apply(changes.pop(0), now)
            # Those that this woke are tried before the next change.
            now += 1.0
        world.perform(world.engine.step(now, 1), now)
    known = world.engine.cluster.nodes.devices.claims
    found: dict[str, Any] = {}
    for each in world.pods.values():
        made = known.get(each.key) or next(iter(known.extended_of(each.uid)), None)
        allocation = None if made is None else made.allocation
        found[each.name] = each.node_name, allocation and allocation.written()
    (kept,) = world.engine.classes.values()
    paths = kept.statistics.paths
    return found, paths[DecisionPath.BATCH] + paths[DecisionPath.COLUMNS]


@pytest.mark.parametrize("seed", range(8))
def test_like_pods_get_what_they_would_get_alone(seed: int) -> None:
    items = objects(seed)
    together, reused = place(items, classes=True)
    alone, _ = place(items, classes=False)

    assert together == alone
    assert any(name for name, _ in alone.values())
    assert reused > 0


def rules(random: Random) -> list[DeviceTaintRule]:
    """Rules that come and change, one after the other."""
    made = []
    for _ in range(30):
        fields = {
            "pool": random.choice([None, f"n{random.randrange(8)}", "net"]),
            "device": random.choice([None, "gpu-0", "gpu-1"]),
        }
        selector = {key: value for key, value in fields.items() if value is not None}
        effect = random.choice(["NoSchedule", "NoExecute", "None"])
        made.append(taint_rule(f"r{random.randrange(4)}", effect, **selector))
    return made


@pytest.mark.parametrize("seed", range(8))
def test_like_pods_get_what_they_would_get_alone_while_rules_taint_devices(seed: int) -> None:
    items, later = objects(seed), rules(Random(seed))
    followed = default(known_plugins(REGISTRY), FeatureGates(VERSIONS[1]))
    together, reused = place(items, classes=True, config=followed, later=later)
    alone, _ = place(items, classes=False, config=followed, later=later)
    untainted, _ = place(items, classes=False, config=followed)

    assert together == alone
    assert reused > 0
    assert alone != untainted


def gpus_by_class(**args: Any) -> Configuration:
    enabled = {"multiPoint": {"enabled": [{"name": "GPUAware", "weight": 5}]}}
    given = {"deviceClasses": ["l4"], **args}
    return configuration(
        profile(plugins=enabled, pluginConfig=[{"name": "GPUAware", "args": given}])
    )


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"mode": "Score"},
        {"reservePerFreeGPU": {"cpu": 1}},
        {"reservePerFreeGPU": {"cpu": 2}, "learnReserve": True},
    ],
    ids=["Filter", "Score", "Reserve", "Learn"],
)
@pytest.mark.parametrize("seed", range(2))
def test_gpus_by_class_keep_the_same_pods_off(seed: int, args: dict[str, Any]) -> None:
    items = [each for each in objects(seed) if getattr(each, "name", "") != "net"]
    first = device_class("l4", OF_MODEL.format("L4"))
    random = Random(seed)
    later = [
        *(resource_slice(f"n{at}", devices(random, 4 * (at % 2))) for at in range(8)),
        replace(first, selectors=device_class("", OF_MODEL.format("A100")).selectors),
        *(resource_slice(f"n{at}", devices(random, 4 * (at % 3 == 0))) for at in range(8)),
        replace(device_class(extendedResourceName="example.com/gpu"), is_for_gpus=True),
        first,
        *(pod(f"late{at}", cpu=1) for at in range(4)),
    ]
    together, reused = place(items, True, gpus_by_class(**args), later)
    alone, _ = place(items, False, gpus_by_class(**args), later)

    assert together == alone
    assert any(name for name, _ in alone.values())
    assert reused > 0
