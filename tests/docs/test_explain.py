"""The page about explain and fit shows what the commands print."""

from __future__ import annotations

import ast
import gzip
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from moorage.engine.explain import explain
from tests.builders import node, node_manifest, pod
from tests.cli.invoking import Moorage
from tests.cli.test_fit_workloads import workload
from tests.docs.pages import DOCS, Block, blocks, languages, run
from tests.explain.building import engine

PAGE = DOCS / "explain.md"
PROMPT = "$ moorage "


@pytest.fixture
def moorage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Moorage:
    return Moorage(monkeypatch, capsys)


@pytest.mark.parametrize("block", tuple(blocks(PAGE, "console")), ids=lambda block: str(block.line))
def test_what_is_shown_is_what_is_printed(moorage: Moorage, block: Block) -> None:
    asked, _, shown = block.text.partition("\n")
    assert asked.startswith(PROMPT)

    assert moorage(*shlex.split(asked.removeprefix(PROMPT))).out == shown


def test_the_code_runs() -> None:
    assert languages(PAGE) == {"console", "python", "sh", "yaml"}
    asked = engine(node("a"))

    told = run("explain_page", *blocks(PAGE, "python"))["why"](asked, pod())

    assert told == explain(asked.decider, pod())


def test_the_table_has_every_kind_of_suggestion() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", PAGE.read_text(), re.MULTILINE)
    told = {kind for row in rows for kind in re.findall(r"`([a-z-]+)`", row)}
    assert told == {"plugin", *find_kinds()}


def find_kinds() -> Iterator[str]:
    """Yields the kinds of advice that the code gives."""
    for file in (DOCS.parent / "src").rglob("*.py"):
        text = file.read_text()
        for call in ast.walk(ast.parse(text)) if "Advice(" in text else ():
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "Advice":
                yield from (ast.literal_eval(k.value) for k in call.keywords if k.arg == "kind")


def test_the_command_of_the_ci_recipe_works(
    moorage: Moorage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As the page has it, with a dump and a chart of our own."""
    (recipe,) = blocks(PAGE, "yaml")
    command = recipe.text.split("| moorage ")[1].split()
    dump = json.dumps(node_manifest("a", cpu=4))
    (tmp_path / "dump.yaml.gz").write_bytes(gzip.compress(dump.encode()))
    chart = io.BytesIO(json.dumps(workload("Deployment")).encode())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=chart))

    ended = moorage(*command)

    assert (ended.code, ended.out) == (0, "1 workload fits on 1 node\n")
