"""Devices are counted per node for scoring, and the counts follow whatever changes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from mooring.cluster import Cluster
from mooring.plugins.dynamic_resources.device_counts import DeviceCounts
from tests.builders import node
from tests.device_builders import device, device_class, holding, resource_slice, result

FAST = device_class("fast", 'device.attributes["gpu.example.com"].model == "fast"')


def gpu(at: int, model: str = "fast", **fields: Any) -> dict[str, Any]:
    return device(f"gpu-{at}", attributes={"model": {"string": model}}, **fields)


def counts(counted: DeviceCounts, cluster: Cluster) -> dict[str, tuple[int, int]]:
    nodes = cluster.nodes
    there, used = counted.count(FAST, nodes, nodes.rows)
    names = nodes.names(nodes.rows.tolist())
    return dict(zip(names, zip(there.tolist(), used.tolist(), strict=True), strict=True))


def test_devices_of_a_class_are_counted_where_they_can_be_used() -> None:
    cluster = Cluster()
    for name in ("n1", "n2", "n3"):
        cluster.put_node(node(name, labels={"rack": name}))
    cluster.put_device(resource_slice("n1", [gpu(0), gpu(1), gpu(2, "slow")]))
    cluster.put_device(resource_slice("net", [gpu(0)], allNodes=True))
    # An expression that breaks: the attribute is missing.
    cluster.put_device(resource_slice("n3", [device("gpu-0")]))
    cluster.put_device(holding("c", result("n1", "gpu-1"), result("net", "gpu-0", "r1")))

    assert counts(DeviceCounts(), cluster) == {"n1": (3, 2), "n2": (1, 1), "n3": (0, 0)}


class Changes:
    """Random changes of a cluster with devices."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.cluster = Cluster()

    def change(self) -> None:
        name = self._random.choice(["n0", "n1", "n2", "net"])
        what = self._random.choice(["node", "slice", "claim", "claim", "gone"])
        nodes = self.cluster.nodes
        if what == "node" and name != "net":
            if nodes.row(name) is not None and self._random.random() < 0.3:
                self.cluster.remove_node(name)
            else:
                rack = self._random.choice("ab")
                self.cluster.put_node(node(name, labels={"rack": rack}))
        elif what == "slice":
            self.cluster.put_device(self._slice(name))
        elif what == "claim":
            held = result(name, f"gpu-{self._random.randrange(3)}")
            claim = holding(f"c{self._random.randrange(3)}", held)
            put = self._random.random() < 0.7
            (self.cluster.put_device if put else self.cluster.remove_device)(claim)
        elif what == "gone" and name in nodes.devices.slices:
            self.cluster.remove_device(nodes.devices.slices[name])

    def _slice(self, name: str) -> Any:
        models = self._random.choices(["fast", "slow"], k=self._random.randrange(4))
        devices = [gpu(at, model) for at, model in enumerate(models)]
        if self._random.random() < 0.1:
            devices.append(device("broken"))
        if name != "net":
            return resource_slice(name, devices)
        match = {"key": "rack", "operator": "In", "values": ["a"]}
        selector = {"nodeSelectorTerms": [{"matchExpressions": [match]}]}
        return resource_slice(name, devices, nodeSelector=selector)


@pytest.mark.parametrize("seed", range(6))
def test_counts_that_follow_changes_are_those_that_are_made_anew(seed: int) -> None:
    changes, kept, most = Changes(seed), DeviceCounts(), 0
    for step in range(120):
        changes.change()
        if step % 3 == 0:
            found = counts(kept, changes.cluster)
            assert found == counts(DeviceCounts(), changes.cluster), step
            most = max(most, *(used for _, used in found.values()), 0)
    assert most, "some devices were in use"
