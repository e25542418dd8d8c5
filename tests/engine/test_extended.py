"""Extended resources in the engine: start-up, wake-ups, preemption, and the end-to-end story."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Self

import hypothesis.strategies as st
from hypothesis import given

from moorage.cluster import ExtendedCache, HandleRegistry, Informer, NodeView
from moorage.cluster.extended.resources import extended_figures
from moorage.engine.actions import Report
from moorage.framework.plugin import NodeFilter
from moorage.objects.custom import CustomObject
from moorage.objects.pod import Pod
from moorage_policies.disk_io.disk_io import DiskIO
from moorage_policies.disk_io.disk_io_resource import (
    BLOCK_SIZES,
    DISK_IO,
    KIND,
    Bandwidth,
    estimate,
)
from moorage_policies.disk_io.quiet_disk import QuietDisk
from tests.builders import node, pod
from tests.engine.driver import Driver, conditions, driver, evictions, only
from tests.extended_fakes import SLOTS, SlotsHandle, custom, status, using

READ, WRITE = "diskio.moorage.dev/read", "diskio.moorage.dev/write"


def disk(name: str, read: int, write: int = 100) -> CustomObject:
    return custom(KIND, name, spec={"nodeName": name, "capacity": {"read": read, "write": write}})


def reading(name: str, amount: object, priority: int = 0, **given: Any) -> Pod:
    held = {"annotations": {READ: str(amount)}}
    return pod(name, metadata=held, spec={"priority": priority}, **given)


def with_disks(*objects: Any) -> Driver:
    return driver(*objects, plugins=(DiskIO, QuietDisk))


# Start-up


def test_the_order_of_the_proposal() -> None:
    """Registry, plugins with their handles, caches, then every handle runs; only then events."""
    story: list[str] = []

    class Told(SlotsHandle):
        def __init__(self) -> None:
            super().__init__()
            story.append("handle")

        def run(self, cache: ExtendedCache[Any], informer: Informer) -> None:
            super().run(cache, informer)
            story.append(f"run with the cache of {cache.resource_type}")

        def read(self, item: CustomObject) -> Any:
            story.append("set")
            return super().read(item)

    class Uses(NodeFilter):
        name = "Uses"

        def __init__(self, handles: HandleRegistry) -> None:
            story.append("plugin")
            self.handle = handles.register(SLOTS, Told)

        @classmethod
        def create_sharing(
            cls, args: Any, gates: Mapping[str, bool], handles: HandleRegistry
        ) -> Self:
            return cls(handles)

        def filter_node(self, pod: Pod, node: NodeView) -> str | None:
            story.append("decides")
            slots = self.handle.get(node)
            assert slots is not None
            return None if slots.admit_pod(pod).fits else "no slots"

    both = [{"name": "Uses"}]
    profiles = [
        {"schedulerName": name, "plugins": {"multiPoint": {"enabled": both}}}
        for name in ("default-scheduler", "other")
    ]
    made = driver(node("a"), status("a", 1), using("p"), plugins=(Uses,), profiles=profiles)
    made.settle()

    assert story == [
        "plugin",
        "handle",
        "plugin",
        f"run with the cache of {SLOTS}",
        "set",
        "decides",
    ]
    assert made.node_of("p") == "a"


# Wake-ups


def test_a_pod_wakes_when_capacity_rises() -> None:
    made = with_disks(node("a"), disk("a", 10), reading("p", 50))
    (condition,) = conditions(made.step()).values()
    assert condition.message.startswith(
        "0/1 nodes are available: 1 Insufficient disk read bandwidth."
    )
    assert made.place("p") == "unschedulable"

    made.apply(disk("a", 40))
    assert made.place("p") == "unschedulable"
    made.apply(disk("a", 60))
    assert made.place("p") == "backoff"
    made.now += 60.0
    made.settle()
    assert made.node_of("p") == "a"


def test_a_pod_wakes_when_a_status_or_its_node_appears() -> None:
    made = with_disks(node("a"), disk("b", 100), reading("p", 50), reading("q", 60))
    made.step(2)
    made.apply(node("b"))
    assert [made.place(name) for name in "pq"] == ["backoff", "backoff"]
    made.now += 60.0
    made.settle()
    assert {made.node_of("p"), made.node_of("q")} == {"b", ""}

    made.apply(disk("a", 100))
    made.now += 60.0
    made.settle()
    assert {made.node_of("p"), made.node_of("q")} == {"a", "b"}


def test_a_pod_wakes_when_a_user_of_the_disk_leaves() -> None:
    other = reading("other", 80, node="a")
    made = with_disks(node("a"), disk("a", 100), other, pod("idle", node="a"), reading("p", 50))
    made.step()
    made.remove(pod("idle", node="a"))
    # It has room for cpu, so nobody but DiskIO rejected it.
    assert made.place("p") == "unschedulable"
    made.remove(other)
    assert made.place("p") == "backoff"


# Preemption


def test_evicting_a_pod_gives_back_what_it_used() -> None:
    lesser = [reading(f"v{at}", 30, node="a") for at in range(3)]
    made = with_disks(node("a"), disk("a", 100), *lesser, reading("p", 50, priority=5))
    taken = made.step()

    # 10 are free: two of 30 must go, and of the three the last is spared.
    assert len(evictions(taken)) == 2
    assert made.nominated("p") == "a"
    assert used(made, "a") == 90
    made.evict(taken)
    made.now += 60.0
    made.settle()
    assert made.node_of("p") == "a"
    assert used(made, "a") == 80


def test_evicting_cannot_make_a_disk_faster() -> None:
    made = with_disks(
        node("a"), disk("a", 40), reading("v", 30, node="a"), reading("p", 50, priority=5)
    )

    assert evictions(made.step()) == []


def test_nominated_pods_use_disks_too() -> None:
    waits = reading("waits", 80, priority=5, status={"nominatedNodeName": "a"})
    gated = {"priority": 5, "schedulingGates": [{"name": "wait"}]}
    keeps = pod(
        "waits",
        metadata={"annotations": waits.annotations},
        spec=gated,
        status={"nominatedNodeName": "a"},
    )
    made = with_disks(node("a"), disk("a", 100), keeps, reading("p", 50), reading("q", 20))
    made.settle()

    assert (made.node_of("p"), made.node_of("q")) == ("", "a")


def used(made: Driver, name: str) -> int:
    return extended_figures(made.engine.cluster.extended)[DISK_IO][name]["read_used"]


# Reports


def test_problems_are_told_once_as_reports() -> None:
    made = with_disks(node("a"), disk("a", 100), reading("bad", "much", node="a"))
    bad = custom(KIND, "b", spec={"nodeName": ""})
    made.apply(bad)
    first = [each.message for each in only(made.step(), Report)]
    made.apply(bad, disk("a", 90), reading("bad", "much", node="a", labels={"x": "y"}))

    assert first == [
        f"extended resource {DISK_IO}: pod default/bad: add_pod: DecodeError: "
        'annotation diskio.moorage.dev/read: must be a quantity, got "much"',
        "NodeDiskIOStatus b: spec.nodeName: is required",
    ]
    assert only(made.step(), Report) == []


def test_objects_that_nobody_asked_for_are_left_alone() -> None:
    made = driver(node("a"))
    made.apply(disk("a", 10))
    made.remove(disk("a", 10))

    assert made.step() == []


# The end-to-end test of the proposal


@given(seed=st.integers(0, 2**32 - 1))
def test_the_cache_is_always_the_resource_minus_what_is_placed(seed: int) -> None:
    """A driver changes what disks can do while pods come and go."""
    random = Random(seed)
    made = with_disks(*(node(name) for name in "abc"))
    told: dict[str, Bandwidth] = {}
    for number in range(25):
        match random.randrange(6):
            case 0 | 1:
                name, has = random.choice("abc"), Bandwidth(random.randrange(200), 100)
                told[name] = has
                made.apply(disk(name, *has))
            case 2 if told:
                name = random.choice(sorted(told))
                made.remove(disk(name, *told.pop(name)))
            case 3 if made.pods:
                made.remove(made.pods[random.choice(sorted(made.pods))])
            case _:
                made.apply(reading(f"p{number}", random.randrange(60), random.randrange(3)))
        made.now += random.choice([0.0, 70.0])
        made.settle()

        assert logged(made) == {name: left(made, name, has) for name, has in told.items()}


def logged(made: Driver) -> dict[str, tuple[int, int]]:
    figures = extended_figures(made.engine.cluster.extended)[DISK_IO]
    return {
        name: (
            each["read_capacity"] - each["read_used"],
            each["write_capacity"] - each["write_used"],
        )
        for name, each in figures.items()
    }


def left(made: Driver, name: str, has: Bandwidth) -> tuple[int, int]:
    here = [
        estimate(each, BLOCK_SIZES)
        for each in made.engine.cluster.pods.values()
        if each.node_name == name
    ]
    return has.read - sum(use.read for use in here), has.write - sum(use.write for use in here)
