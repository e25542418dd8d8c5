"""Feature gates: defaults, switching, and what cannot be switched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.config import ConfigError, FeatureGates


@pytest.mark.parametrize(
    ("gate", "enabled"),
    [
        ("SchedulerQueueingHints", True),
        ("SchedulerAsyncPreemption", True),
        ("SchedulerPopFromBackoffQ", True),
        ("OpportunisticBatching", True),
        ("SchedulerOpportunisticBatching", True),
        ("EquivalenceCache", True),
        ("CoexistPolicy", True),
        ("NodeDeclaredFeatures", True),
        ("DynamicResourceAllocation", True),
        ("SchedulerAsyncAPICalls", False),
        ("StorageCapacityScoring", False),
        ("TaintTolerationComparisonOperators", False),
        ("GangScheduling", False),
    ],
)
def test_defaults(gate: str, enabled: bool) -> None:
    gates = FeatureGates()

    assert gates.enabled(gate) is enabled
    assert gates[gate] is enabled
    assert dict(gates)[gate] is enabled


def test_a_mapping_switches_gates() -> None:
    gates = FeatureGates.parse({"StorageCapacityScoring": True, "EquivalenceCache": False})

    assert gates["StorageCapacityScoring"]
    assert not gates["EquivalenceCache"]
    assert gates["CoexistPolicy"]
    assert gates == FeatureGates(StorageCapacityScoring=True, EquivalenceCache=False)
    assert gates != FeatureGates()
    assert len(gates) == len(list(gates))


@pytest.mark.parametrize(
    "given", ["OpportunisticBatching", "SchedulerOpportunisticBatching"], ids=str
)
@pytest.mark.parametrize(
    "asked", ["OpportunisticBatching", "SchedulerOpportunisticBatching"], ids=str
)
def test_both_names_of_batching_are_one_gate(given: str, asked: str) -> None:
    assert not FeatureGates.parse({given: False})[asked]


@pytest.mark.parametrize(
    ("text", "switched"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("EquivalenceCache=false", {"EquivalenceCache": False}, id="one"),
        pytest.param(
            " EquivalenceCache = False , StorageCapacityScoring=1,",
            {"EquivalenceCache": False, "StorageCapacityScoring": True},
            id="blanks and other booleans",
        ),
        pytest.param("kube:EquivalenceCache=f", {"EquivalenceCache": False}, id="component"),
        pytest.param("SchedulerQueueingHints=true", {}, id="locked, to what it is"),
        pytest.param("CompositePodGroup=false", {}, id="not supported, switched off"),
        pytest.param(
            "InterPodAffinityHostnameFastPath=true,InPlacePodVerticalScalingSchedulerPreemption=false",
            {"InterPodAffinityHostnameFastPath": True},
            id="of a newer version",
        ),
        pytest.param("PodLevelResources=true", {}, id="cannot be switched off, switched on"),
    ],
)
def test_text(text: str, switched: dict[str, bool]) -> None:
    assert FeatureGates.from_text(text) == FeatureGates(**switched)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        pytest.param({"Nope": True}, "Nope: unknown feature gate", id="unknown"),
        pytest.param(
            {"CoexistPolicy": 1}, "CoexistPolicy: must be true or false, got 1", id="no boolean"
        ),
        pytest.param(
            {"SchedulerQueueingHints": False},
            "SchedulerQueueingHints: is locked to true",
            id="locked",
        ),
        *(
            pytest.param({gate: True}, f"{gate}: not supported by Moorage yet", id=gate)
            for gate in (
                "CompositePodGroup",
                "DRADerivedAttributes",
                "DRADeviceCompatibilityGroups",
                "DRAListTypeAttributes",
                "DRAOptionalNodeOperations",
                "InPlacePodVerticalScalingSchedulerPreemption",
                "DRANodeAllocatableResources",
                "CoordinatedLeaderElection",
            )
        ),
        *(
            pytest.param({gate: False}, f"{gate}: cannot be switched off in Moorage", id=gate)
            for gate in (
                "InPlacePodLevelResourcesVerticalScaling",
                "MatchLabelKeysInPodTopologySpread",
                "NominatedNodeNameForExpectation",
                "PodLevelResources",
            )
        ),
        pytest.param(
            {"DRAWorkloadResourceClaims": True},
            "DRAWorkloadResourceClaims: needs GenericWorkload, which is off",
            id="needs groups",
        ),
        pytest.param(
            {"GangScheduling": True},
            "GangScheduling: needs GenericWorkload, which is off",
            id="needs another",
        ),
        pytest.param(
            {"OpportunisticBatching": True, "SchedulerOpportunisticBatching": False},
            "SchedulerOpportunisticBatching: "
            "contradicts OpportunisticBatching, which is the same gate",
            id="contradiction",
        ),
    ],
)
def test_refusals(raw: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FeatureGates.parse(raw)

    assert str(caught.value) == f"--feature-gates: {problem}"


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        FeatureGates.from_text("Nope=true,CoexistPolicy,CompositePodGroup=true,EquivalenceCache=no")

    assert [str(problem) for problem in caught.value.problems] == [
        "Nope: unknown feature gate",
        'CoexistPolicy: must be true or false, got ""',
        "CompositePodGroup: not supported by Moorage yet",
        'EquivalenceCache: must be true or false, got "no"',
    ]


@pytest.mark.parametrize(
    "gate",
    [
        pytest.param("NodeDeclaredFeatures", id="honoured: its plugin is not a default one"),
        pytest.param("CoexistPolicy", id="honoured: so is this one's"),
        pytest.param("SchedulerPopFromBackoffQ", id="honoured by the queue"),
        pytest.param("SchedulerAsyncPreemption", id="actions are never waited for"),
        pytest.param("ClearingNominatedNodeNameAfterBinding", id="of the API server"),
        pytest.param("MatchLabelKeysInPodTopologySpreadSelectorMerge", id="API server, too"),
        pytest.param("MutableCSINodeAllocatableCount", id="of the API server and the kubelet"),
        pytest.param("ComponentFlagz", id="an endpoint"),
        pytest.param("WatchList", id="a way to list objects"),
        pytest.param("DRASchedulerFilterTimeout", id="searches end after a number of steps"),
    ],
)
def test_what_can_be_switched_off(gate: str) -> None:
    assert not FeatureGates.parse({gate: False})[gate]


def test_a_gate_is_switched_off_honestly_or_not_at_all() -> None:
    """A new gate has to be put in one of these groups, by what the code does without it."""
    fixed = {
        name
        for name, is_on in FeatureGates().items()
        if is_on and _problem(name) == "cannot be switched off in Moorage"
    }
    refused = {name for name, is_on in FeatureGates().items() if is_on and _problem(name)}

    assert fixed == {
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "InPlacePodLevelResourcesVerticalScaling",
        "MatchLabelKeysInPodTopologySpread",
        "NominatedNodeNameForExpectation",
        "PodLevelResources",
    }
    assert {_problem(name) for name in refused - fixed} == {"is locked to true"}


def test_gates_that_cannot_be_switched_are_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/versions.md").read_text(encoding="utf-8")
    refused = {
        name
        for name, is_on in FeatureGates().items()
        if "Moorage" in _problem(name, switched=not is_on)
    }

    assert len(refused) > 10
    assert {name for name in refused if f"`{name}`" not in page} == set()


def _problem(gate: str, *, switched: bool = False) -> str:
    try:
        FeatureGates.parse({gate: switched})
    except ConfigError as error:
        return error.problems[0].message
    return ""


def test_asking_for_a_gate_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(KeyError):
        FeatureGates().enabled("Nope")
