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


def test_a_gate_that_is_not_known_skips_the_scenario_visibly(
    moorage: Moorage, tmp_path: Path
) -> None:
    path = tmp_path / "gates.jsonl"
    path.write_text(recording({"pod": "default/one"}, featureGates={"GangScheduling": True}))

    result = moorage("conform", str(path))

    assert result.code == 0
    assert "skipped small-00: " in result.out
    assert "GangScheduling" in result.out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("{", "line 1: ", id="no JSON"),
        pytest.param(recording({"pod": "default/two"}), "no pending pod default/two", id="no pod"),
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
