"""Devices in the cluster: who holds them, and which rows see the same."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from moorage.cel import count_compiled
from moorage.cluster import Change, Cluster, check
from moorage.cluster.changes import EVERYWHERE
from moorage.cluster.devices.claims import DecidedClaim, Decision
from moorage.cluster.devices.pools import Pool, PoolKey, PoolStatus, PoolView
from moorage.objects.decode import from_builtins
from moorage.objects.device import DeviceClass, ResourceSlice
from moorage.objects.resource_claim import Allocation, ResourceClaim
from tests.builders import cluster, node
from tests.device_builders import claim, device, device_class, holding, resource_slice, result

TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
ZONE_A: dict[str, Any] = {"nodeSelector": {"nodeSelectorTerms": [TERM]}}


def seen(known: Cluster, name: str) -> list[tuple[str, PoolStatus, tuple[str, ...]]]:
    row = known.nodes.row(name)
    assert row is not None
    views = known.nodes.device_groups.views(name, row)
    return [(view.key[1], view.status, view.names) for view in views]


def taken(known: Cluster, name: str) -> list[int]:
    row = known.nodes.row(name)
    assert row is not None
    groups = known.nodes.device_groups
    local = groups.group(int(groups.local[row]))
    pools = groups.pools(local, groups.pattern(int(groups.patterns[row])))
    return [state[0] for _, state in pools]


def with_slices(*slices: ResourceSlice) -> Cluster:
    known = cluster(node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}))
    for each in slices:
        known.put_device(each)
    return known


USABLE, INCOMPLETE, INVALID = PoolStatus.USABLE, PoolStatus.INCOMPLETE, PoolStatus.INVALID
COUNTERS = {"sharedCounters": [{"name": "set", "counters": {"memory": {"value": "8Gi"}}}]}
PART = {"consumesCounters": [{"counterSet": "set", "counters": {"memory": {"value": "4Gi"}}}]}
TWO = {"name": "n1", "resourceSliceCount": 2}


@pytest.mark.parametrize(
    ("slices", "n1", "n2"),
    [
        pytest.param(
            [resource_slice("n1", 2)], [("n1", USABLE, ("gpu-0", "gpu-1"))], [], id="of one node"
        ),
        pytest.param(
            [resource_slice("net", 1, **ZONE_A), resource_slice("n1")],
            [("n1", USABLE, ("gpu-0",)), ("net", USABLE, ("gpu-0",))],
            [],
            id="by labels",
        ),
        pytest.param(
            [resource_slice("n1", pool={"resourceSliceCount": 2})],
            [("n1", INCOMPLETE, ())],
            [],
            id="a slice is missing",
        ),
        pytest.param(
            [resource_slice("n1"), resource_slice("n2", pool={"name": "n1", "generation": 2})],
            [("n1", USABLE, ("gpu-0",))],
            [("n1", USABLE, ("gpu-0",))],
            id="a complete pool does not look at newer slices of other nodes",
        ),
        pytest.param(
            [
                resource_slice("n1", pool={"resourceSliceCount": 2}),
                resource_slice("n2", pool={"name": "n1", "generation": 2}),
            ],
            [],
            [("n1", USABLE, ("gpu-0",))],
            id="an incomplete one does, and is out of date",
        ),
        pytest.param(
            [resource_slice("n1", [device("x"), device("x")])],
            [("n1", INVALID, ())],
            [],
            id="a name twice",
        ),
        pytest.param(
            [
                resource_slice("c", [], nodeName="n1", pool=TWO, **COUNTERS),
                resource_slice("n1", [device("x", **PART)], pool=TWO),
            ],
            [("n1", USABLE, ("x",))],
            [],
            id="counters matter to other nodes only if something is wrong",
        ),
        pytest.param(
            [resource_slice("c", [], nodeName="n1", pool=TWO, **COUNTERS)],
            [("n1", INCOMPLETE, ())],
            [("n1", INCOMPLETE, ())],
            id="and then they do",
        ),
        pytest.param(
            [
                resource_slice(
                    "p",
                    [device("x", nodeName="n2"), device("y", allNodes=True)],
                    perDeviceNodeSelection=True,
                )
            ],
            [("p", USABLE, ("x", "y"))],
            [("p", USABLE, ("x", "y"))],
            id="each device chooses nodes by itself",
        ),
        pytest.param(
            [
                resource_slice("a", [device("x", bindingConditions=["c"])], allNodes=True),
                resource_slice("n1"),
            ],
            [("n1", USABLE, ("gpu-0",)), ("a", USABLE, ("x",))],
            [("a", USABLE, ("x",))],
            id="pools with binding conditions come last",
        ),
        pytest.param(
            [
                resource_slice("n1-b", pool=TWO, nodeName="n1"),
                resource_slice("n1-a", [device("z")], pool=TWO, nodeName="n1"),
            ],
            [("n1", USABLE, ("z", "gpu-0"))],
            [],
            id="slices are in the order of their names",
        ),
    ],
)
def test_what_a_node_sees(
    slices: list[ResourceSlice],
    n1: list[tuple[str, PoolStatus, tuple[str, ...]]],
    n2: list[tuple[str, PoolStatus, tuple[str, ...]]],
) -> None:
    known = with_slices(*slices)

    assert (seen(known, "n1"), seen(known, "n2")) == (n1, n2)
    check(known)


def test_rows_of_one_group_see_the_same_and_part_when_a_device_is_taken() -> None:
    known = with_slices(resource_slice("n1", 8), resource_slice("n2", 8))
    groups = known.nodes.device_groups
    assert groups.local[0] == groups.local[1] != 0

    known.put_device(holding("c", result("n2", "gpu-1")))

    groups = known.nodes.device_groups
    assert groups.local[0] != groups.local[1]
    assert (taken(known, "n1"), taken(known, "n2")) == ([0], [2])


def test_admin_access_takes_no_device() -> None:
    known = with_slices(resource_slice("n1"))
    known.put_device(holding("c", result("n1", "gpu-0", adminAccess=True)))

    assert taken(known, "n1") == [0]


def test_a_change_is_noted_on_the_row_that_sees_it() -> None:
    known = with_slices(resource_slice("n1"), resource_slice("net", **ZONE_A))
    before = known.changes.generation
    known.put_device(holding("c", result("n1", "gpu-0")))
    assert known.changes.since(before) == {0: Change.CLAIMS}

    before = known.changes.generation
    known.put_device(holding("d", result("net", "gpu-0")))
    assert known.changes.since(before) == {EVERYWHERE: Change.CLAIMS}

    before = known.changes.generation
    known.put_device(device_class())
    assert known.changes.since(before) == {EVERYWHERE: Change.CLASSES}


def allocation(pool: str, name: str) -> Allocation:
    held = holding("c", result(pool, name)).allocation
    assert held is not None
    return held


def decided(pool: str = "n1", name: str = "gpu-0") -> Decision:
    return Decision("n1", (DecidedClaim("default/c", "uid-c", allocation(pool, name)),))


def test_a_decision_holds_its_devices_until_the_claim_has_them() -> None:
    known = with_slices(resource_slice("n1"))
    known.put_device(claim("c"))
    decisions = known.nodes.device_decisions

    decisions.decide("pod", decided())
    assert (taken(known, "n1"), known.nodes.devices.claims.is_in_flight("uid-c")) == ([1], True)
    check(known)

    known.put_device(holding("c", result("n1", "gpu-0")))
    assert (taken(known, "n1"), known.nodes.devices.claims.is_in_flight("uid-c")) == ([1], False)

    decisions.release("pod")
    known.put_device(claim("c"))
    assert taken(known, "n1") == [0]
    check(known)


def test_a_decision_that_may_be_written_holds_its_devices_after_it_was_taken_back() -> None:
    known = with_slices(resource_slice("n1"))
    known.put_device(claim("c"))
    decisions = known.nodes.device_decisions
    decisions.decide("pod", decided())
    decisions.ask("pod")

    decisions.release("pod")
    assert taken(known, "n1") == [1]
    known.put_device(claim("c", metadata={"finalizers": ["x"]}))
    assert taken(known, "n1") == [1]

    known.end_doubt("pod", {})
    assert taken(known, "n1") == [0]
    assert known.take_freed_devices() == [allocation("n1", "gpu-0")]
    check(known)


@pytest.mark.parametrize(
    ("seen", "is_held"),
    [
        pytest.param(claim("c", metadata={"resourceVersion": "4"}), True, id="an older form"),
        pytest.param(claim("c", metadata={"resourceVersion": "x"}), True, id="who knows"),
        pytest.param(claim("c", metadata={"resourceVersion": "10"}), False, id="given back since"),
    ],
)
@pytest.mark.parametrize("is_seen_first", [False, True])
def test_a_claim_that_was_read_with_devices_keeps_them_until_it_is_seen(
    seen: ResourceClaim, is_held: bool, is_seen_first: bool
) -> None:
    known = with_slices(resource_slice("n1"))
    known.put_device(claim("c", metadata={"resourceVersion": "1"}))
    decisions = known.nodes.device_decisions
    decisions.decide("pod", decided())
    decisions.ask("pod")
    decisions.release("pod")

    steps: list[Callable[[], object]] = [
        lambda: known.end_doubt("pod", {"uid-c": "9"}),
        lambda: known.put_device(seen),
    ]
    for step in reversed(steps) if is_seen_first else steps:
        assert taken(known, "n1") == [1]
        step()
    assert taken(known, "n1") == [int(is_held)]
    assert len(known.take_freed_devices()) == (not is_held)
    known.remove_device(seen)
    assert taken(known, "n1") == [0]
    check(known)


def test_an_answer_about_an_earlier_attempt_says_nothing_about_a_later_one() -> None:
    known = with_slices(resource_slice("n1"))
    known.put_device(claim("c"))
    decisions = known.nodes.device_decisions
    for _ in range(2):
        # The first time, the claim is seen with devices and gives them back.
        known.put_device(holding("c", result("n1", "gpu-0")))
        known.put_device(claim("c"))
        decisions.decide("pod", decided())
        decisions.ask("pod")
        known.revoke_claims("pod")
        decisions.release("pod")
    known.end_doubt("pod", {})
    assert taken(known, "n1") == [1]
    known.end_doubt("pod", {})
    assert taken(known, "n1") == [0]


def test_of_two_classes_with_one_resource_the_newer_has_it() -> None:
    known = Cluster()
    old, new = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    for name, created in (("b", old), ("a", new), ("c", old)):
        known.put_device(_class_of(name, created))
    classes = known.nodes.devices.classes

    found = {name: classes.for_resource(name) for name in ("r/x", *(_IMPLICIT + n for n in "abc"))}
    # The one that came before a newer one keeps its own name, the one that came after has none.
    assert {name: each and each.name for name, each in found.items()} == {
        "r/x": "a",
        _IMPLICIT + "a": "a",
        _IMPLICIT + "b": "b",
        _IMPLICIT + "c": None,
    }


_IMPLICIT = "deviceclass.resource.kubernetes.io/"


@pytest.mark.parametrize("nodes_first", [True, False])
def test_groups_are_made_as_objects_come(
    nodes_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Cluster()
    # A pool that nodes share is looked at later, and keeps nobody else waiting.
    known.put_device(resource_slice("net", 1, allNodes=True))
    steps: list[Callable[[str], object]] = [
        lambda name: known.put_node(node(name)),
        lambda name: known.put_device(resource_slice(name, 2)),
    ]
    for step in steps if nodes_first else reversed(steps):
        for at in range(3):
            step(f"n{at}")
    asked: list[PoolKey] = []
    really = Pool._make_view

    def make_view(self: Pool, *more: Any) -> PoolView | None:
        asked.append(self.key)
        return really(self, *more)

    monkeypatch.setattr(Pool, "_make_view", make_view)
    views = [seen(known, f"n{at}") for at in range(3)]

    assert asked == [("gpu.example.com", "net")]
    assert [[pool for pool, _, _ in each] for each in views] == [[f"n{at}", "net"] for at in "012"]
    check(known)


def test_expressions_of_a_class_are_compiled_as_it_comes() -> None:
    before = count_compiled()
    cluster().put_device(device_class("new", 'device.driver == "nobody has asked this before"'))

    assert count_compiled() == before + 1


def test_a_pool_that_nodes_share_comes_between_like_nodes() -> None:
    known = Cluster()
    for name in ("n1", "a1"):
        known.put_node(node(name))
        known.put_device(resource_slice(name, 2))
    known.put_device(holding("held", result("n1", "gpu-0"), result("a1", "gpu-0")))
    assert taken(known, "n1") == taken(known, "a1") == [1]

    known.put_device(resource_slice("m", 3, allNodes=True))

    assert (taken(known, "n1"), taken(known, "a1")) == ([0, 1], [1, 0])
    check(known)


def test_a_pool_moves_from_node_to_node() -> None:
    known = with_slices(resource_slice("n1", 2))
    known.put_device(holding("held", result("n1", "gpu-0")))
    assert taken(known, "n1") == [1]

    known.put_device(resource_slice("n1", 2, nodeName="n2"))
    assert (taken(known, "n1"), taken(known, "n2")) == ([], [1])
    known.put_device(resource_slice("n1", 2, allNodes=True))
    assert (taken(known, "n1"), taken(known, "n2")) == ([1], [1])
    known.put_device(resource_slice("n1", 2, nodeName="n2"))
    assert (taken(known, "n1"), taken(known, "n2")) == ([], [1])
    check(known)


def _class_of(name: str, created: str) -> DeviceClass:
    raw = {
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"extendedResourceName": "r/x"},
    }
    made = from_builtins("DeviceClass", raw)
    assert isinstance(made, DeviceClass)
    return made


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_rows_see_what_the_objects_say(seed: int) -> None:
    random = Random(seed)
    known = Cluster()
    slices = [
        resource_slice("n0", 3),
        resource_slice("n0", 2),
        resource_slice("n1", 2),
        resource_slice("s", 2, nodeName="n1", pool={"name": "n0", "resourceSliceCount": 2}),
        resource_slice("n2", [device("gpu-0", allowMultipleAllocations=True)]),
        resource_slice("net", 2, **ZONE_A),
        resource_slice("every", 1, allNodes=True),
        resource_slice(
            "c", [], nodeName="n2", pool={"name": "p", "resourceSliceCount": 2}, **COUNTERS
        ),
        resource_slice(
            "d",
            [device("gpu-0", **PART)],
            nodeName="n2",
            pool={"name": "p", "resourceSliceCount": 2},
        ),
    ]
    claims: list[ResourceClaim] = [
        claim(f"c{number}")
        if random.random() < 0.3
        else holding(f"c{number}", result(pool, "gpu-0"))
        for number in range(8)
        for pool in [random.choice(["n0", "n1", "n2", "net", "p", "none"])]
    ]
    nodes = [node(f"n{n}", labels={"zone": zone}) for n in range(4) for zone in "ab"]
    steps: list[Callable[[], object]] = [
        *(lambda each=each: known.put_device(each) for each in (*slices, *claims)),
        *(lambda each=each: known.remove_device(each) for each in (*slices, *claims)),
        *(lambda each=each: known.put_node(each) for each in nodes),
        *(lambda each=each: known.remove_node(each.name) for each in nodes),
        *(lambda pod=pod: known.nodes.device_decisions.ask(pod) for pod in "xy"),
        *(lambda pod=pod: known.nodes.device_decisions.release(pod) for pod in "xy"),
        *(lambda pod=pod: known.end_doubt(pod, {}) for pod in "xy"),
        lambda: known.nodes.device_groups,
    ]
    for step in range(150):
        if step % 10 == 9 and not known.nodes.devices.claims.decision("x"):
            known.end_doubt("x", {})
            known.nodes.device_decisions.decide("x", decided("n0", "gpu-1"))
        random.choice(steps)()
        if step % 5 == 0:
            check(known)
    check(known)
