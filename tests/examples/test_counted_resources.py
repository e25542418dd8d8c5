"""The example of counted resources, and the configurations of its page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from moorage.config import load
from moorage.engine import Engine
from moorage.engine.registry import registry
from moorage.framework.profile import known_plugins
from tests.cli.invoking import Moorage
from tests.docs.pages import DOCS, blocks

EXAMPLE = DOCS.parent / "examples" / "counted-resources"
PAGE = DOCS / "counted-resources.md"


def test_the_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    moorage = Moorage(monkeypatch, capsys)
    config = str(EXAMPLE / "scheduler.yaml")
    result = moorage("simulate", "-o", "json", "--config", config, str(EXAMPLE / "cluster.yaml"))

    outcome = json.loads(result.out)
    placed = {each["pod"]: each["node"] for each in outcome["placements"]}
    assert placed == {"camera": "studio-b", "stream": "studio-b", "solver": "plain"}
    why = {each["pod"]: each["message"] for each in outcome["pending"]}
    assert "1 Insufficient example.com/uplink, 2 node(s) of which" in why["stream-too"]
    assert "3 the pool example.com/solver-licences has 1 of 3 left." in why["solver-too"]
    assert result.err == ""


def test_the_configurations_of_the_page() -> None:
    plugins = registry()
    for block in blocks(PAGE, "yaml"):
        loaded = load(block.text, known=known_plugins(plugins), source=PAGE.name)
        assert len(dict(Engine(loaded, plugins).handles)) == 1


def test_explain_shows_what_is_counted_of_a_node(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moorage = Moorage(monkeypatch, capsys)
    files = str(EXAMPLE / "scheduler.yaml"), str(EXAMPLE / "cluster.yaml")
    asked = ("explain", "node/studio-b", "--config", files[0], files[1])

    found = json.loads(moorage(*asked, "-o", "json").out)["extendedResources"]
    assert found["example.com/uplink"] == {"capacity": 900_000_000, "used": 0, "old": 0}
    assert "example.com/capture-slots   capacity 2, used 0, old 0" in moorage(*asked).out


def test_explain_tells_pods_apart_that_differ_by_annotations_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    moorage = Moorage(monkeypatch, capsys)
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(re.sub(r"image: \w+", "image: app", (EXAMPLE / "cluster.yaml").read_text()))
    files = str(EXAMPLE / "scheduler.yaml"), str(cluster)

    node = json.loads(moorage("explain", "node/plain", "--config", *files, "-o", "json").out)
    assert [each["pods"] for each in node["waiting"]] == [
        ["default/stream", "default/stream-too"],
        ["default/solver", "default/solver-too"],
        ["default/camera"],
    ]
    told = moorage("explain", "--config", *files).out
    assert "the pool example.com/solver-licences has 1 of 3 left" in told
    assert "Insufficient example.com/uplink" in told
