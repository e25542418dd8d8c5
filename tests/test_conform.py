"""Verdicts recorded from kube-scheduler: Moorage finds the same for every pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.config.kubernetes_versions import VERSIONS, KubernetesVersion
from moorage.plugins import REGISTRY
from moorage.simulate import verdicts
from moorage.simulate.conformance import conform
from tests.builders import node_manifest, pod_manifest
from tests.exactness.outsiders import Fragile

GOLDEN = Path(__file__).parent / "golden"
RECORDED = sorted(GOLDEN.glob("*.jsonl.gz"))
NEW = VERSIONS[-1]
RECORDED_FROM_NEW = sorted((GOLDEN / NEW.name).glob("*.jsonl.gz"))

#: Scenarios in which kube-scheduler has a mistake that is not copied; docs/versions.md names them.
NOT_COPIED = frozenset({"gang-images"})


def test_there_are_recordings() -> None:
    assert len(RECORDED) == 24
    assert len(RECORDED_FROM_NEW) == 2


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_verdicts(path: Path) -> None:
    compare_all(path)


@pytest.mark.parametrize(
    "path", RECORDED_FROM_NEW, ids=lambda path: path.name.removesuffix(".jsonl.gz")
)
def test_verdicts_of_1_37(path: Path) -> None:
    compare_all(path, NEW)


def compare_all(path: Path, version: KubernetesVersion | None = None) -> None:
    results = conform(verdicts.read_scenarios(path), REGISTRY, version)

    names = [name.replace("-", "") for name in results]
    assert names == [path.name.removesuffix(".jsonl.gz").replace("-", "")]
    for result in results.values():
        assert result.steps >= result.scenarios > 0
        found = [each for each in result.differences if each.scenario not in NOT_COPIED]
        assert not found, f"{len(found)} differences, the first: {found[0]}"


def test_what_is_not_copied_is_recorded_and_documented() -> None:
    scenarios = {each.scenario.name for path in RECORDED for each in verdicts.read_scenarios(path)}
    documented = (Path(__file__).parents[1] / "docs/versions.md").read_text(encoding="utf-8")

    assert scenarios >= NOT_COPIED
    for name in NOT_COPIED:
        assert f"`{name}`" in documented


def unparsable(nodes: int, **step: Any) -> verdicts.RecordedScenario:
    """A pod whose preferred term does not parse, and what was recorded for it."""
    expression = {"key": "size", "operator": "Gt", "values": ["large"]}
    term = {"weight": 1, "preference": {"matchExpressions": [expression]}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    raw = {
        "scenario": {
            "name": "unparsable",
            "category": "nodeaffinity",
            "config": None,
            "objects": [node_manifest(f"n{number}") for number in range(nodes)],
            "pending": [pod_manifest("p", spec={"affinity": {"nodeAffinity": preferred}})],
        },
        "golden": {"name": "unparsable", "steps": [{"pod": "default/p", "filter": {}, **step}]},
    }
    return msgspec.convert(raw, verdicts.RecordedScenario)


@pytest.mark.parametrize(
    ("recorded", "differences"),
    [
        pytest.param(
            unparsable(1, chosen="n0", scoringSkipped=True), [], id="one node, nothing to score"
        ),
        pytest.param(
            unparsable(2, chosen="n0"), ["error", "message"], id="of two nodes one must be scored"
        ),
    ],
)
def test_a_score_that_breaks_is_no_error_where_scoring_is_skipped(
    recorded: verdicts.RecordedScenario, differences: list[str]
) -> None:
    (result,) = conform([recorded], REGISTRY).values()

    assert [each.what for each in result.differences] == differences


@pytest.mark.parametrize(
    ("status", "differences"),
    [({"nominatedNodeName": "sound"}, []), ({}, ["error", "message"])],
    ids=["nominated", "not nominated"],
)
def test_a_filter_that_breaks_is_no_error_of_a_pod_that_goes_where_it_is_nominated(
    status: dict[str, Any], differences: list[str]
) -> None:
    broken = [node_manifest("broken", cpu=4), pod_manifest("large", cpu=4, node="broken")]
    raw = {
        "scenario": {
            "name": "broken",
            "category": "profiles",
            "config": {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"plugins": {"filter": {"enabled": [{"name": "Fragile"}]}}}],
            },
            "objects": [node_manifest("sound"), *broken],
            "pending": [pod_manifest("p", status=status)],
        },
        "golden": {"name": "broken", "steps": [{"pod": "default/p", "chosen": "sound"}]},
    }
    recorded = msgspec.convert(raw, verdicts.RecordedScenario)

    (result,) = conform([recorded], {**REGISTRY, "Fragile": Fragile}).values()

    assert [each.what for each in result.differences] == differences


def test_whichever_node_pods_are_evicted_from_the_message_names_it() -> None:
    """Where several nodes are equally good, any of them may be the one in the message."""
    nodes = [node_manifest("a", cpu=1), node_manifest("b", cpu=1)]
    running = [pod_manifest(f"on-{name}", cpu=1, node=name) for name in "ab"]
    said = "0/2 nodes are available: 2 Insufficient cpu. preemption: found a potential placement"
    step = {
        "pod": "default/p",
        "nominated": "b",
        "nominatedAny": ["b", "a"],
        "message": f"{said} for pod on node b, preempting 1 victims",
    }
    raw = {
        "scenario": {
            "name": "tie",
            "category": "preemption",
            "config": None,
            "objects": [*nodes, *running],
            "pending": [pod_manifest("p", cpu=1, spec={"priority": 1})],
        },
        "golden": {"name": "tie", "steps": [step]},
    }

    (result,) = conform([msgspec.convert(raw, verdicts.RecordedScenario)], REGISTRY, NEW).values()

    assert "message" not in [each.what for each in result.differences]


def test_another_call_of_an_extender_is_a_difference() -> None:
    path = next(each for each in RECORDED if "extenderwire" in each.name)
    recording = next(verdicts.read_scenarios(path))
    first, *steps = recording.golden.steps
    call, *calls = first.calls
    body = {**call.body, "NodeNames": ["other"]}
    changed = msgspec.structs.replace(call, nodes=("other",), body=body)
    first = msgspec.structs.replace(first, calls=(changed, *calls[:-1]))
    golden = msgspec.structs.replace(recording.golden, steps=(first, *steps))

    results = conform([msgspec.structs.replace(recording, golden=golden)], REGISTRY)

    (result,) = results.values()
    assert [each.what for each in result.differences] == ["call 0 nodes", "call 0 body", "call 1"]
