"""All commands that answer have the same formats, which say the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.invoking import Moorage

ROOT = Path(__file__).parents[2]
DEMO = str(ROOT / "examples" / "demo")
GOLDEN = str(min(ROOT.glob("tests/golden/*.jsonl.gz"), key=lambda path: path.stat().st_size))

COMMANDS = {
    "simulate": (DEMO,),
    "explain": ("lab/report", DEMO),
    "fit": (DEMO, "--count", "2"),
    "top": (DEMO,),
    "conform": (GOLDEN,),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_json_and_yaml_say_the_same(moorage: Moorage, command: str) -> None:
    table, found, same = (
        moorage(command, *COMMANDS[command], "-o", output) for output in ("table", "json", "yaml")
    )

    assert table.code == found.code == same.code
    assert yaml.safe_load(same.out) == json.loads(found.out) != {}
    assert table.out != found.out != same.out
