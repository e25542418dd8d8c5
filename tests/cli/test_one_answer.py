"""Explain, fit and simulate give one answer about what would happen to a pod that waits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.builders import node_manifest, pod_manifest
from tests.cli.invoking import Moorage

Json = dict[str, Any]


def _waits(name: str, cpu: int, priority: int, created: str) -> Json:
    pod = pod_manifest(name, cpu=cpu, spec={"priority": priority})
    pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{created}Z"
    return pod


# The oldest pod comes last, the most important one evicts, and one fits only before the others.
CONTENDED = (
    node_manifest("a", cpu=4),
    node_manifest("b", cpu=2),
    pod_manifest("lesser", cpu=3, node="a", spec={"priority": -1}),
    _waits("first", 2, 0, "09"),
    _waits("second", 2, 0, "01"),
    _waits("vital", 3, 9, "05"),
    _waits("huge", 64, 0, "05"),
)


@dataclass
class Answers:
    """What each command says of the pods of a cluster that wait."""

    simulated: Json
    fit: dict[str, str]
    overview: dict[str, Json]

    @classmethod
    def of(cls, moorage: Moorage, path: str) -> Answers:
        fit = json.loads(moorage("fit", path, "-o", "json").out)
        groups = json.loads(moorage("explain", path, "-o", "json").out)
        return cls(
            json.loads(moorage("simulate", path, "-o", "json").out),
            {each["pod"]: each["after"] for each in fit["moves"]},
            {pod: each["explanation"] for each in groups for pod in each["pods"]},
        )


def _key(each: Json) -> str:
    return f"{each['namespace']}/{each['pod']}"


@pytest.fixture(params=["examples/demo", "examples/volumes", "contended"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param != "contended":
        return str(request.param)
    file = tmp_path / "contended.json"
    file.write_text("\n".join(map(json.dumps, CONTENDED)))
    return str(file)


def test_all_commands_agree_about_each_pod(moorage: Moorage, path: str) -> None:
    answers = Answers.of(moorage, path)
    evicting = {each["by"] for each in answers.simulated["preempted"]}
    placed = {_key(each): each["node"] for each in answers.simulated["placements"]}
    pending = {_key(each): each["message"] for each in answers.simulated["pending"]}

    assert answers.fit.keys() == {*placed, *pending}
    assert answers.overview.keys() == {*evicting, *pending}
    for pod, node in answers.fit.items():
        asked = moorage("explain", pod, path, "-o", "json")
        alone = json.loads(asked.out)
        if pod in pending:
            assert (asked.code, node, alone["message"]) == (1, "", pending[pod])
            assert alone["rejections"] == answers.overview[pod]["rejections"]
        elif pod in evicting:
            assert (asked.code, node, alone["state"]) == (1, "", "preempting")
            assert alone["preemption"]["node"] == placed[pod]
            assert alone == answers.overview[pod]
        else:
            assert (asked.code, node, alone["chosen"]) == (0, placed[pod], placed[pod])


def test_a_pod_that_fits_only_by_evicting_others_does_not_fit_now(
    moorage: Moorage, tmp_path: Path
) -> None:
    file = tmp_path / "contended.json"
    file.write_text("\n".join(map(json.dumps, CONTENDED)))

    overview = moorage("explain", str(file))

    assert overview.code == 1
    first, *groups = overview.out.split("\n\n")
    assert first == "2 pods fit nowhere; 1 pod fits only by evicting others; 1 pod fits now"
    (vital,) = [each for each in groups if "vital" in each]
    assert vital.splitlines()[-1] == "    would fit node a once evicted: default/lesser"
    alone = moorage("explain", "vital", str(file)).out
    assert alone.startswith("pod default/vital fits no node of 2 without evicting others\n")
