"""Devices are counted per node for scoring, and the counts follow whatever changes."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.cluster import Cluster
from moorage.framework.status import PluginError
from moorage.plugins import node_resources_fit
from moorage.plugins.allocation import ResourceSpec, ScoringStrategy
from moorage.plugins.dynamic_resources.device_counts import DeviceCounts
from moorage.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from tests.builders import node, pod
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


def count_in_part(counted: DeviceCounts, cluster: Cluster) -> tuple[dict[str, Any], int]:
    """The counts when they are complete, and how many attempts were given up before."""
    for given_up in range(100):
        with suppress(PluginError), counted.limited():
            return counts(counted, cluster), given_up
    raise AssertionError("no attempt goes on from where another ended")


def test_devices_that_all_differ_are_counted_by_several_decisions() -> None:
    """So that no number of slices, and no expression, can hold up other pods for long."""
    cluster, counted = Cluster(), DeviceCounts(most_steps=60)
    for number in range(8):
        cluster.put_node(node(f"n{number}"))
        cluster.put_device(resource_slice(f"n{number}", [gpu(0), gpu(1, f"m{number}")]))

    with (
        pytest.raises(PluginError, match="gave up counting devices after 60 steps, the next"),
        counted.limited(),
    ):
        counts(counted, cluster)
    found, given_up = count_in_part(counted, cluster)

    assert found == {f"n{number}": (1, 0) for number in range(8)}
    assert given_up >= 2, "a new answer takes half of the steps"
    assert count_in_part(counted, cluster) == (found, 0)


def test_a_pod_is_scored_by_devices_once_they_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_resources_fit, "DeviceCounts", lambda: DeviceCounts(60))
    scored = (ResourceSpec(name="example.com/gpu", weight=1),)
    strategy = ScoringStrategy(type="MostAllocated", resources=scored)
    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy))
    cluster = Cluster()
    cluster.put_device(replace(FAST, extended_resource_name="example.com/gpu"))
    for number in range(4):
        cluster.put_node(node(f"n{number}"))
        devices = [gpu(0), gpu(1, f"m{number}"), *(gpu(2 + at) for at in range(number))]
        cluster.put_device(resource_slice(f"n{number}", devices))
    nodes, rows = cluster.nodes, cluster.nodes.rows
    prepared = plugin.pre_score(pod("p", gpu=1), nodes, rows)

    with pytest.raises(PluginError, match="gave up counting devices"):
        plugin.score(prepared, nodes, rows)
    with suppress(PluginError):
        plugin.score(prepared, nodes, rows)

    assert plugin.score(prepared, nodes, rows).tolist() == [100, 50, 33, 25]


@pytest.mark.parametrize("seed", range(2))
def test_counts_that_are_made_in_part_come_to_the_same(seed: int) -> None:
    changes, given_up = Changes(seed), 0
    for step in range(120):
        if step % 12 == 0:
            kept = DeviceCounts(most_steps=45)
        changes.change()
        if step % 3 == 0:
            found, more = count_in_part(kept, changes.cluster)
            assert found == counts(DeviceCounts(), changes.cluster), step
            given_up += more
        elif step % 3 == 1:
            # What is not done yet may change meanwhile.
            with suppress(PluginError), kept.limited():
                counts(kept, changes.cluster)
    assert given_up, "some attempts were given up"


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
