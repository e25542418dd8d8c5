"""The disk example: what a newcomer sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.invoking import Moorage

EXAMPLE = Path(__file__).parents[2] / "examples" / "disk-io"


@pytest.fixture
def moorage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Moorage:
    return Moorage(monkeypatch, capsys)


def simulate(moorage: Moorage, *more: str) -> tuple[dict[str, Any], str]:
    result = moorage("simulate", "-o", "json", *more, str(EXAMPLE / "cluster.yaml"))
    return json.loads(result.out), result.err


def test_disks_decide(moorage: Moorage) -> None:
    outcome, notes = simulate(moorage, "--config", str(EXAMPLE / "scheduler.yaml"))

    placed = {each["pod"]: each["node"] for each in outcome["placements"]}
    assert placed == {"analytics": "fast", "index": "fast", "database": "slow", "web": "unknown"}
    (pending,) = outcome["pending"]
    assert pending["message"].startswith(
        "0/3 nodes are available: 1 node(s) without disk IO status, "
        "2 Insufficient disk write bandwidth."
    )
    assert notes == ""


def test_without_the_plugins_nothing_is_taken_of_them(moorage: Moorage) -> None:
    outcome, notes = simulate(moorage)

    assert outcome["pending"] == []
    assert notes == "note: ignored 2 NodeDiskIOStatus: scheduling has no use for it\n"
