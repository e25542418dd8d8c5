"""`moorage conform`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import node_manifest, pod_manifest
from tests.cli.invoking import Moorage

GOLDEN = Path(__file__).parents[1] / "golden"


def recording(*steps: dict[str, Any], **scenario: Any) -> str:
    given = {
        "name": "small-00",
        "category": "small",
        "config": None,
        "objects": [node_manifest()],
        "pending": [pod_manifest("one")],
        **scenario,
    }
    return json.dumps({"scenario": given, "golden": {"name": "small-00", "steps": steps}})


def test_no_difference_is_0(moorage: Moorage) -> None:
    result = moorage("conform", str(GOLDEN / "ports.jsonl.gz"))

    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[-1].split() == ["total", "460", "steps", "0", "differences"]


def test_every_difference_is_told(moorage: Moorage, tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(recording({"pod": "default/one", "chosen": None, "message": "elsewhere"}))

    result = moorage("conform", str(path))

    assert result.code == 1
    assert "small-00 default/one: message: recorded elsewhere, found None" in result.out


UNKNOWN_GATE = {"name": "gates-00", "featureGates": {"GangScheduling": True}}
UNKNOWN_PLUGIN = {
    "name": "plugin-00",
    "config": {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Absent"}]}}}],
    },
}


@pytest.mark.parametrize(
    ("skipped", "reason"),
    [
        pytest.param(UNKNOWN_GATE, "GangScheduling", id="a feature gate"),
        pytest.param(UNKNOWN_PLUGIN, 'unknown plugin "Absent"', id="a plugin"),
    ],
)
def test_what_is_skipped_is_counted_and_named(
    moorage: Moorage, tmp_path: Path, skipped: dict[str, Any], reason: str
) -> None:
    path = tmp_path / "some.jsonl"
    step = {"pod": "default/one", "chosen": "node"}
    path.write_text("\n".join([recording(step, **skipped), recording(step)]))

    result = moorage("conform", str(path))

    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert "(1 scenarios, 1 skipped)" in lines[0]
    assert f"  skipped {skipped['name']}: " in lines[1]
    assert reason in lines[1]
    assert " ".join(lines[-1].split()) == "total 1 steps 0 differences 1 scenarios skipped"


@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(recording(**UNKNOWN_PLUGIN), "every scenario was skipped", id="all skipped"),
        pytest.param("", "there are no recorded verdicts", id="no scenario"),
        pytest.param(recording(), "there are no recorded verdicts", id="no step"),
    ],
)
def test_it_fails_if_nothing_was_compared(
    moorage: Moorage, tmp_path: Path, text: str, why: str, output: str
) -> None:
    path = tmp_path / "none.jsonl"
    path.write_text(text)

    result = moorage("conform", str(path), "-o", output)

    assert result.code == 1
    assert result.err == f"Nothing was compared: {why}.\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("{", "line 1: ", id="no JSON"),
        pytest.param(recording({"pod": "default/two"}), "no pending pod default/two", id="no pod"),
        pytest.param(
            recording({"pod": "default/one", "chosen": "n7"}), "there is no node n7", id="no node"
        ),
        pytest.param(
            recording({"group": "default/g", "outcomes": [{"pod": "default/one", "node": "n7"}]}),
            "there is no node n7",
            id="no node of a member",
        ),
        pytest.param(
            recording(objects=[node_manifest(cpu="2x")]), '"2x" is not a quantity', id="object"
        ),
    ],
)
def test_bad_files_are_2(moorage: Moorage, tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)

    result = moorage("conform", str(path))

    assert result.code == 2
    assert told in result.err
    assert result.err.count("\n") == 1
