"""The page about explain and fit shows what the commands print."""

from __future__ import annotations

import re
import shlex
from typing import get_args

import pytest

from mooring.engine.explain import explain
from mooring.framework.advice import Kind
from tests.builders import node, pod
from tests.cli.invoking import Mooring
from tests.docs.pages import DOCS, Block, blocks, languages, run
from tests.explain.building import engine

PAGE = DOCS / "explain.md"
PROMPT = "$ mooring "


@pytest.fixture
def mooring(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Mooring:
    return Mooring(monkeypatch, capsys)


@pytest.mark.parametrize("block", tuple(blocks(PAGE, "console")), ids=lambda block: str(block.line))
def test_what_is_shown_is_what_is_printed(mooring: Mooring, block: Block) -> None:
    asked, _, shown = block.text.partition("\n")
    assert asked.startswith(PROMPT)

    assert mooring(*shlex.split(asked.removeprefix(PROMPT))).out == shown


def test_the_code_runs() -> None:
    assert languages(PAGE) == {"console", "python"}
    asked = engine(node("a"))

    told = run("explain_page", *blocks(PAGE, "python"))["why"](asked, pod())

    assert told == explain(asked, pod())


def test_the_table_has_every_kind_of_suggestion() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", PAGE.read_text(), re.MULTILINE)
    told = {kind for row in rows for kind in re.findall(r"`([a-z-]+)`", row)}
    assert told == set(get_args(Kind))
