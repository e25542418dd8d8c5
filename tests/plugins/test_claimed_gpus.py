"""What is learned from claims to GPUs: kept figures equal a new count."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from moorage.cluster import Cluster
from moorage.objects.pod import Pod
from moorage.plugins.claimed_gpus import ClaimedGPUs, Figures
from moorage.plugins.gpu_use import CPU_MILLI, GPUS
from tests.builders import cluster, node, pod
from tests.device_builders import (
    claim,
    device,
    device_class,
    holding,
    request,
    resource_slice,
    result as given,
)

NODES = ("a", "b", "c")
LIMIT = "nvidia.com/gpu"
POOL = {"generation": 1, "resourceSliceCount": 1}


def has_limit(item: Pod) -> bool:
    return any(name == LIMIT for name, _ in item.spec.requests)


def count_all(known: Cluster, *classes: str) -> Figures:
    return ClaimedGPUs(has_limit).count(known.nodes, classes)


def claiming(name: str, place: str, status: bool = True, **fields: Any) -> Pod:
    """A pod with a claim that was made for it."""
    made = [{"name": "gpu", "resourceClaimName": name}] if status else []
    return pod(
        name,
        node=place,
        spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
        status={"resourceClaimStatuses": made},
        **fields,
    )


def change_pods(known: Cluster, random: Random) -> None:
    name, place = f"p{random.randrange(6)}", random.choice(NODES)
    match random.randrange(3):
        case 0:
            known.put_pod(claiming(name, place, status=random.random() < 0.7, cpu=1))
        case 1:
            known.remove_pod(f"default/{name}")
        case _:
            known.put_pod(pod(name, node=place, cpu=2, **{"a.b/gpu": random.randrange(3)}))


def change_claims(known: Cluster, random: Random) -> None:
    name, place = f"p{random.randrange(6)}", random.choice(NODES)
    there = known.nodes.devices.claims.get(f"default/{name}")
    if there is not None and random.random() < 0.3:
        known.remove_device(there)
    else:
        devices = [given(place, f"gpu-{at}") for at in range(random.randrange(3))]
        known.put_device(holding(name, *devices) if devices else claim(name))


def change_devices(known: Cluster, random: Random) -> None:
    place = random.choice(NODES)
    wide = resource_slice("wide", 4, allNodes=True, pool={**POOL, "name": place})
    match random.randrange(4):
        case 0:
            known.put_device(resource_slice(place, random.randrange(4)))
        case 1:
            known.put_device(wide)
        case 2:
            known.remove_device(wide)
        case _:
            known.put_device(device_class(extendedResourceName=random.choice(["", "a.b/gpu"])))


@pytest.mark.parametrize("seed", range(5))
def test_kept_figures_equal_a_new_count(seed: int) -> None:
    random = Random(seed)
    known = cluster(*(node(name) for name in NODES))
    known.put_device(device_class())
    for name in NODES:
        known.put_device(resource_slice(name, 4))
    kept, seen = ClaimedGPUs(has_limit), 0
    for _ in range(150):
        random.choice((change_pods, change_claims, change_devices))(known, random)
        if random.random() < 0.6:
            fresh = count_all(known, "gpu")
            assert np.array_equal(kept.count(known.nodes, ["gpu"]), fresh)
            seen += int(fresh[GPUS].sum())
    assert seen > 50


def place(*items: Any) -> Cluster:
    """One node, with what is there of devices and pods."""
    known = cluster(node("a"))
    known.put_device(resource_slice("a", [device(name) for name in ("gpu-0", "gpu-1", "card")]))
    for item in items:
        if isinstance(item, Pod):
            known.put_pod(item)
        else:
            known.put_device(item)
    return known


@pytest.mark.parametrize(
    ("held", "gpus"),
    [
        pytest.param(claim("p"), 0, id="no devices yet"),
        pytest.param(holding("p", given("a", "gpu-0"), given("a", "gpu-1")), 2, id="two"),
        pytest.param(holding("p", given("a", "gpu-0", adminAccess=True)), 0, id="as an admin"),
        pytest.param(holding("p", given("b", "gpu-0")), 0, id="on another node"),
        pytest.param(holding("p", given("a", "gpu-9")), 0, id="a device that is not there"),
        pytest.param(holding("p", given("a", "gpu-0", "r0/best")), 0, id="another request"),
    ],
)
def test_devices_of_a_claim_are_counted(held: Any, gpus: int) -> None:
    counted = count_all(place(device_class(), held, claiming("p", "a", cpu=3)), "gpu")

    assert counted[GPUS].tolist()[0] == gpus
    assert counted[CPU_MILLI].tolist()[0] == (3000 if gpus else 0)


def test_an_alternative_counts_by_its_own_class() -> None:
    ways = [{"name": name, "deviceClassName": name} for name in ("net", "gpu")]
    asked = claim("p", {"name": "r", "firstAvailable": ways})
    got = {
        name: replace(asked, allocation=holding("p", given("a", "gpu-0", f"r/{name}")).allocation)
        for name in ("net", "gpu")
    }

    for name, gpus in (("net", 0), ("gpu", 1)):
        known = place(device_class(), got[name], claiming("p", "a"))
        assert count_all(known, "gpu")[GPUS].tolist()[0] == gpus


def test_who_is_known_by_a_limit_is_not_counted_twice() -> None:
    held = holding("p", given("a", "gpu-0"))
    known = place(device_class(), held, claiming("p", "a", True, cpu=3, **{LIMIT: 1}))

    assert count_all(known, "gpu")[CPU_MILLI].tolist()[0] == 0


def test_other_classes_are_no_gpus() -> None:
    asked = claim("p", request(class_name="net"))
    held = replace(asked, allocation=holding("p", given("a", "card")).allocation)
    known = place(device_class("net"), held, claiming("p", "a"))

    assert count_all(known, "gpu")[GPUS].tolist()[0] == 0
