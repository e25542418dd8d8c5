"""How fast pods with claims are decided: decisions only, in processor time.

    python -m benchmarks.devices [--nodes 5000] [--pods 5000] [--alone] [--distinct]

Every node has eight devices, and every pod one claim of one device, made from a template.
`--alone` decides without classes and batches. `--distinct` gives every device an attribute of its
own, as drivers that publish serial numbers do.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from mooring.config import default
from mooring.engine import Engine
from mooring.engine.classes.classes import ClassSettings
from mooring.framework.profile import known_plugins
from mooring.objects.decode import from_builtins
from mooring.plugins import REGISTRY
from mooring.world import World

DRIVER = "gpu.example.com"
_DEVICES = 8
_SELECTOR = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model == "A100"'


def make_node(name: str) -> dict[str, Any]:
    room = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    return {"metadata": {"name": name}, "status": {"allocatable": room, "capacity": room}}


def make_slice(name: str, distinct: bool) -> dict[str, Any]:
    devices = []
    for at in range(_DEVICES):
        attributes: dict[str, Any] = {"model": {"string": "A100"}, "index": {"int": at}}
        if distinct:
            attributes["uuid"] = {"string": f"{name}-{at}"}
        devices.append({"name": f"gpu-{at}", "attributes": attributes})
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
    return {"metadata": {"name": f"{name}-gpus"}, "spec": spec}


def make_claim(number: int, requests: int) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    owner = {"kind": "Pod", "name": f"p{number}", "uid": f"u{number}", "controller": True}
    meta = {"name": f"c{number}", "namespace": "default", "uid": f"cu{number}"}
    asked = [{"name": f"r{at}", "exactly": exactly} for at in range(requests)]
    return {
        "metadata": {**meta, "ownerReferences": [owner]},
        "spec": {"devices": {"requests": asked}},
    }


def make_pod(number: int) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": "100m"}}}
    reference = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
    made = {"name": "gpu", "resourceClaimName": f"c{number}"}
    return {
        "metadata": {"name": f"p{number}", "namespace": "default", "uid": f"u{number}"},
        "spec": {"containers": [container], "resourceClaims": [reference]},
        "status": {"resourceClaimStatuses": [made]},
    }


def make_world(nodes: int, *, alone: bool, distinct: bool) -> World:
    settings = ClassSettings(classes=not alone, batches=not alone)
    world = World(Engine(default(known_plugins(REGISTRY)), REGISTRY, settings))
    spec = {"selectors": [{"cel": {"expression": _SELECTOR}}]}
    world.apply(from_builtins("DeviceClass", {"metadata": {"name": "gpu"}, "spec": spec}), 0.0)
    for number in range(nodes):
        name = f"n{number:05}"
        world.apply(from_builtins("Node", make_node(name)), 0.0)
        world.apply(from_builtins("ResourceSlice", make_slice(name, distinct)), 0.0)
    return world


def measure(world: World, pods: int, requests: int = 1) -> tuple[float, int]:
    """The seconds that deciding takes, and how many pods got a node."""
    for number in range(pods):
        world.apply(from_builtins("ResourceClaim", make_claim(number, requests)), 0.0)
        world.apply(from_builtins("Pod", make_pod(number)), 0.0)
    # What rows see of devices is found out when the scheduler starts.
    assert world.engine.cluster.nodes.device_groups
    spent = 0.0
    for _ in range(2 * pods + 10):
        began = time.process_time()
        actions = world.engine.step(0.0, 64)
        spent += time.process_time() - began
        world.perform(actions, 0.0)
        if not actions:
            break
    return spent, sum(bool(pod.node_name) for pod in world.pods.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--requests", type=int, default=1)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--distinct", action="store_true")
    given = parser.parse_args()
    world = make_world(given.nodes, alone=given.alone, distinct=given.distinct)
    spent, placed = measure(world, given.pods, given.requests)
    rate = given.pods / spent
    told = f"{given.nodes} nodes, {placed} of {given.pods} pods placed: {rate:,.0f} pods/s"
    sys.stdout.write(told + "\n")


if __name__ == "__main__":
    main()
