"""Comparing verdicts: where kube-scheduler chooses at random, any of its choices is right."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.config.kubernetes_versions import read_version
from moorage.plugins import REGISTRY
from moorage.simulate.conformance import conform
from moorage.simulate.verdicts import RecordedScenario
from tests.builders import node_manifest, pod_manifest

Manifest = dict[str, Any]

GATED = {
    "plugin": "SchedulingGates",
    "code": "UnschedulableAndUnresolvable",
    "reasons": ["waiting for scheduling gates: [g]"],
}
CLAIMLESS = {
    "plugin": "DynamicResources",
    "code": "UnschedulableAndUnresolvable",
    "reasons": ['could not find ResourceClaim "default/absent"'],
}
GROUP = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "default", "uid": "pg.g"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
}


def find_differences(
    step: Manifest, objects: list[Manifest], pod: Manifest, version: str = "1.36", **scenario: Any
) -> list[str]:
    raw = {
        "scenario": {
            "name": "small",
            "category": "small",
            "config": None,
            "objects": objects,
            "pending": [pod],
            **scenario,
        },
        "golden": {"name": "small", "steps": [step]},
    }
    recorded = msgspec.convert(raw, RecordedScenario)
    (result,) = conform([recorded], REGISTRY, read_version(version, "version")).values()
    return [each.what for each in result.differences]


@pytest.mark.parametrize(
    ("step", "differences"),
    [
        pytest.param({"chosen": "n0"}, [], id="nothing is recorded of scores"),
        pytest.param({"chosen": "n0", "total": {}, "best": []}, [], id="nothing is scored"),
        pytest.param({"chosen": "n0", "scoringSkipped": True}, [], id="it says so"),
        pytest.param({"chosen": "n0", "best": ["n0"]}, [], id="the best is known without a score"),
        pytest.param({"chosen": "full"}, ["chosen"], id="another node"),
        pytest.param({"chosen": "n0", "best": ["full"]}, ["best"], id="another is best"),
    ],
)
def test_a_single_node_that_fits_needs_no_score(step: Manifest, differences: list[str]) -> None:
    full = node_manifest("full", cpu=0)
    refused = {"plugin": "NodeResourcesFit", "code": "UnschedulableAndUnresolvable"}
    recorded = {"filter": {"full": {**refused, "reasons": ["Insufficient cpu"]}}, **step}

    found = find_differences(
        {"pod": "default/p", **recorded},
        [node_manifest("n0", cpu=4), full],
        pod_manifest("p", cpu=1),
    )

    assert found == differences


def test_of_two_nodes_that_fit_the_scores_are_compared() -> None:
    nodes = [node_manifest("n0"), node_manifest("n1")]

    found = find_differences({"pod": "default/p", "chosen": "n0"}, nodes, pod_manifest("p"))

    assert {"total n0", "total n1", "best"} <= set(found)


def test_scores_that_were_recorded_though_they_are_not_needed_are_compared() -> None:
    step = {"pod": "default/p", "chosen": "n0", "total": {"n0": 1}, "best": ["n0"]}

    found = find_differences(step, [node_manifest("n0")], pod_manifest("p"))

    assert "total n0" in found


@pytest.mark.parametrize("chosen", ["n0", "n1"])
@pytest.mark.parametrize(("victims", "differences"), [(1, []), (2, ["message"])])
def test_the_message_may_name_any_of_the_nodes_that_tie(
    chosen: str, victims: int, differences: list[str]
) -> None:
    names = ("n0", "n1")
    objects = [node_manifest(name, cpu=1) for name in names]
    objects += [
        pod_manifest(f"on-{name}", cpu=1, node=name, status={"startTime": "2026-01-01T00:00:00Z"})
        for name in names
    ]
    refused = {"plugin": "NodeResourcesFit", "code": "Unschedulable"}
    step = {
        "pod": "default/p",
        "filter": {name: {**refused, "reasons": ["Insufficient cpu"]} for name in names},
        "message": "0/2 nodes are available: 2 Insufficient cpu. preemption: found a potential "
        f"placement for pod on node {chosen}, preempting {victims} victims",
        "nominated": chosen,
        "nominatedAny": list(names),
        "victims": [f"default/on-{chosen}"],
        "candidates": {name: {"victims": [f"default/on-{name}"]} for name in names},
    }
    urgent = pod_manifest("p", cpu=1, spec={"priority": 9})

    assert find_differences(step, objects, urgent, "1.37") == differences


HELD = [
    pytest.param(GATED, True, id="the first"),
    pytest.param(CLAIMLESS, True, id="another"),
    pytest.param({**GATED, "reasons": ["another"]}, False, id="another reason"),
    pytest.param(None, False, id="none"),
]


@pytest.mark.parametrize(("recorded", "is_right"), HELD)
def test_any_plugin_that_holds_a_pod_back_may_be_recorded(
    recorded: Manifest | None, is_right: bool
) -> None:
    spec = {
        "schedulingGates": [{"name": "g"}],
        "resourceClaims": [{"name": "c", "resourceClaimName": "absent"}],
    }
    step = {"pod": "default/p", "preEnqueue": recorded}

    found = find_differences(step, [node_manifest("n0")], pod_manifest("p", spec=spec))

    assert found == ([] if is_right else ["preEnqueue"])


@pytest.mark.parametrize(("recorded", "is_right"), HELD)
def test_any_plugin_that_holds_a_member_of_a_group_back_may_be_recorded(
    recorded: Manifest | None, is_right: bool
) -> None:
    spec = {
        "schedulingGates": [{"name": "g"}],
        "resourceClaims": [{"name": "c", "resourceClaimName": "absent"}],
        "schedulingGroup": {"podGroupName": "g"},
    }
    held = {} if recorded is None else {"default/p": recorded}
    step = {"group": "default/g", "pods": ["default/p"], "preEnqueue": held}

    found = find_differences(
        step,
        [node_manifest("n0"), GROUP],
        pod_manifest("p", spec=spec),
        "1.37",
        featureGates={"GenericWorkload": True},
    )

    assert found == ([] if is_right else ["preEnqueue"])
