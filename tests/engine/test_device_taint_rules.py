"""Devices that an administrator taints by rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from moorage import ClusterSnapshot
from moorage.cluster import Cluster, check
from moorage.cluster.devices.pools import PoolView, SliceReading
from moorage.cluster.recount import recount
from moorage.config import FeatureGates, default
from moorage.config.kubernetes_versions import VERSIONS
from moorage.engine import Engine
from moorage.framework.profile import known_plugins
from moorage.objects.decode import reader
from moorage.objects.device import DeviceTaintRule
from moorage.objects.kinds import KINDS, KnownKind
from moorage.plugins import REGISTRY
from moorage.plugins.dynamic_resources.device_allocation import AllocationFound
from moorage.plugins.dynamic_resources.preparation import ClaimPlans
from moorage.world import World
from tests.builders import node, node_manifest, pod, pod_manifest
from tests.device_builders import (
    DRIVER,
    claim,
    claim_manifest,
    device_class,
    request,
    resource_slice,
    slice_manifest,
    taint_rule,
    taint_rule_manifest,
)

_, NEW = VERSIONS
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {},
}
REFERENCE = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}


def place(
    rule: dict[str, Any],
    version: str = "1.37",
    gates: dict[str, bool] | None = None,
    **ask: Any,
) -> str:
    """Returns the node of a pod that wants one device, where both nodes have one: n1 if it can."""
    found = ClusterSnapshot(()).add(
        node_manifest("n1", cpu=8),
        node_manifest("n2", cpu=2),
        CLASS,
        slice_manifest("n1"),
        slice_manifest("n2"),
        rule,
        claim_manifest("c", request(**ask)),
        pod_manifest("p", spec=REFERENCE),
    )
    configured = found.configure(emulation_version=version, feature_gates=gates)
    return configured.explain("default/p").chosen


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(taint_rule_manifest("r", pool="n1"), "n2", id="of a pool"),
        pytest.param(taint_rule_manifest("r", driver=DRIVER, pool="n1"), "n2", id="of a driver's"),
        pytest.param(taint_rule_manifest("r", pool="n1", device="gpu-0"), "n2", id="of a device"),
        pytest.param(taint_rule_manifest("r", "NoExecute", pool="n1"), "n2", id="that evicts"),
        pytest.param(taint_rule_manifest("r"), "", id="with an empty selector"),
        pytest.param(taint_rule_manifest("r", driver=DRIVER), "", id="of all of a driver's"),
        pytest.param(taint_rule_manifest("r", device="gpu-0"), "", id="of all of a name"),
        pytest.param(
            {**taint_rule_manifest("r"), "spec": {"taint": {"key": "k", "effect": "NoSchedule"}}},
            "",
            id="without a selector",
        ),
        pytest.param(taint_rule_manifest("r", pool="n1", device="x"), "n1", id="of another device"),
        pytest.param(taint_rule_manifest("r", pool="n1", driver="x"), "n1", id="of another driver"),
        pytest.param(taint_rule_manifest("r", "None", pool="n1"), "n1", id="that only informs"),
        pytest.param(taint_rule_manifest("r", "New", pool="n1"), "n1", id="of an unknown effect"),
    ],
)
def test_a_tainted_device_is_not_given(rule: dict[str, Any], expected: str) -> None:
    assert place(rule) == expected


def test_a_request_may_tolerate_a_taint_of_a_rule() -> None:
    rule = taint_rule_manifest("r", key="broken", pool="n1")

    assert place(rule, tolerations=[{"operator": "Exists", "key": "broken"}]) == "n1"
    assert place(rule, tolerations=[{"operator": "Exists", "key": "other"}]) == "n2"


def test_rules_count_as_the_gate_says_which_is_on_in_1_37() -> None:
    rule, gate = taint_rule_manifest("r", pool="n1"), "DRADeviceTaintRules"

    assert place(rule, "1.36") == "n1"
    assert place(rule, "1.36", {gate: True}) == "n2"
    assert place(rule, "1.37", {gate: False}) == "n1"
    forms = KINDS["DeviceTaintRule"].read_forms
    assert forms(FeatureGates()) == []
    assert [each.version for each in forms(FeatureGates(NEW))] == ["v1", "v1beta2"]


class Scene:
    """An engine and a world with one node of one device, and a pod that wants it."""

    def __init__(self, *objects: Any) -> None:
        configuration = default(known_plugins(REGISTRY), FeatureGates(NEW))
        self.engine = Engine(configuration, REGISTRY)
        self.world = World(self.engine)
        for each in (node("n1"), device_class(), resource_slice("n1", 1), *objects):
            self.world.apply(each, 0.0)
        for each in (claim("c"), pod("p", spec=REFERENCE)):
            self.world.apply(each, 0.0)
        self.now = 0.0

    def run(self) -> str:
        """Returns the node of the pod after some time."""
        for _ in range(6):
            self.now += 5.0
            self.world.perform(self.engine.step(self.now, 10), self.now)
        (found,) = self.world.pods.values()
        return found.node_name


def test_a_pod_that_waits_is_tried_again_when_a_rule_goes() -> None:
    scene = Scene(taint_rule("r"))
    assert scene.run() == ""

    scene.world.remove(taint_rule("r"), scene.now)

    assert scene.run() == "n1"


def test_a_pod_that_waits_is_tried_again_when_a_rule_changes() -> None:
    scene = Scene(taint_rule("r"))
    assert scene.run() == ""

    scene.world.apply(taint_rule("r", "None"), scene.now)

    assert scene.run() == "n1"


def test_a_cluster_counted_anew_keeps_its_rules() -> None:
    scene = Scene(taint_rule("r"))

    recount(scene.engine.cluster)

    check(scene.engine.cluster)
    assert scene.run() == ""


def feasible(cluster: Cluster, *, plans: ClaimPlans) -> list[bool]:
    """Returns for each row whether it has a device."""
    plan = plans.plan((claim("c").spec,), cluster.nodes.devices.classes)
    groups = cluster.nodes.device_groups
    return [
        plan.outcome_on(groups, row).found is AllocationFound.DEVICES
        for row in cluster.nodes.rows.tolist()
    ]


def make_cluster(nodes: int) -> Cluster:
    cluster = Cluster(reading=SliceReading(follows_taint_rules=True))
    cluster.put_device(device_class())
    for number in range(nodes):
        cluster.put_node(node(f"n{number}"))
        cluster.put_device(resource_slice(f"n{number}", 2))
    return cluster


@pytest.mark.parametrize("seed", range(3))
def test_rules_that_come_and_go_leave_what_the_last_ones_say(seed: int) -> None:
    random = Random(seed)
    cluster, plans = make_cluster(4), ClaimPlans()
    rules: dict[str, DeviceTaintRule] = {}
    cluster.put_device(resource_slice("net", 1, allNodes=True))
    for _ in range(150):
        name = f"r{random.randrange(6)}"
        if random.random() < 0.4:
            if name in rules:
                cluster.remove_device(rules.pop(name))
        else:
            rules[name] = random_rule(random, name)
            cluster.put_device(rules[name])
        if random.random() < 0.2:
            cluster.put_device(resource_slice("n1", random.choice([1, 2])))
        if random.random() < 0.5:
            expected = [any_left(cluster, rules, row) for row in range(4)]
            assert feasible(cluster, plans=plans) == expected
    check(cluster)


def random_rule(random: Random, name: str) -> DeviceTaintRule:
    fields = {
        "driver": random.choice([None, DRIVER, DRIVER, "other"]),
        "pool": random.choice([None, "n0", "n1", "net"]),
        "device": random.choice([None, "gpu-0", "gpu-1"]),
    }
    selector = {key: value for key, value in fields.items() if value is not None}
    effect = random.choice(["NoSchedule", "NoExecute", "None", "New"])
    return taint_rule(name, effect, key=random.choice("ab"), **selector)


def any_left(cluster: Cluster, rules: dict[str, DeviceTaintRule], row: int) -> bool:
    """Returns whether a row sees a device that no rule taints, looking at each rule and device."""
    repelling = [each for each in rules.values() if each.taint.effect.startswith("NoS")]
    repelling += [each for each in rules.values() if each.taint.effect == "NoExecute"]
    return any(
        not any(is_meant(rule, (item.driver, item.pool, device.name)) for rule in repelling)
        for item in cluster.nodes.devices.slices.values()
        if item.nodes in (True, cluster.nodes.name(row))
        for device in item.devices
    )


def is_meant(rule: DeviceTaintRule, what: tuple[str, str, str]) -> bool:
    return all(want in (None, value) for want, value in zip(rule.selector, what, strict=True))


def test_ten_thousand_rules_about_every_device_are_looked_at_once() -> None:
    cluster, plans = make_cluster(100), ClaimPlans()
    for number in range(10_000):
        cluster.put_device(taint_rule(f"r{number}", key=f"k{number}"))
    (found, *others) = {
        id(model.rule_taints[0]) for view in views_of(cluster) for model in view.shape.models
    }

    assert found
    assert not others, "all devices share the taints of all rules"
    assert feasible(cluster, plans=plans) == [False] * 100
    for number in range(10_000):
        cluster.remove_device(taint_rule(f"r{number}", key=f"k{number}"))
    assert feasible(cluster, plans=plans) == [True] * 100


def views_of(cluster: Cluster) -> Iterator[PoolView]:
    groups = cluster.nodes.device_groups
    for row in cluster.nodes.rows.tolist():
        yield from groups.views(cluster.nodes.name(row), row)


def test_a_rule_that_repeats_a_taint_changes_no_device() -> None:
    cluster = make_cluster(1)
    cluster.put_device(taint_rule("one"))
    before = cluster.nodes.devices.taint_rules.version

    cluster.put_device(taint_rule("two"))
    cluster.remove_device(taint_rule("one"))

    assert cluster.nodes.devices.taint_rules.version == before


@pytest.mark.parametrize("form", KINDS["DeviceTaintRule"].forms, ids=lambda form: form.version)
def test_a_rule_is_read_alike_in_each_api_version(form: KnownKind) -> None:
    known, text = reader(form), json.dumps(taint_rule_manifest("r", pool="n1")).encode()

    assert known.build(known.read_one(text)) == taint_rule("r", pool="n1")
