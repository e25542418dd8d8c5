"""The code of docs/writing-a-plugin.md runs, and its configurations load."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import isabstract
from pathlib import Path
from typing import Any

import pytest

from mooring.config import load
from mooring.engine.registry import registry
from mooring.framework.plugin import Plugin
from mooring.framework.profile import known_plugins

PAGE = Path(__file__).parents[2] / "docs" / "writing-a-plugin.md"
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of the page."""

    language: str
    text: str
    line: int


def blocks(language: str) -> Iterator[Block]:
    page = PAGE.read_text()
    for found in FENCED.finditer(page):
        if found[1] == language:
            yield Block(language, found[2], page.count("\n", 0, found.start(2)))


def run(*code: Block) -> dict[str, Any]:
    """Runs blocks one after the other; tracebacks point into the page."""
    namespace: dict[str, Any] = {"__name__": "writing_a_plugin"}
    for block in code:
        # Leading empty lines make the line numbers those of the page.
        exec(compile("\n" * block.line + block.text, str(PAGE), "exec"), namespace)
    return namespace


NAMESPACE = run(*blocks("python"))
TESTS = {name: each for name, each in NAMESPACE.items() if name.startswith("test_")}
PLUGINS = {
    each.name: each
    for each in NAMESPACE.values()
    if isinstance(each, type)
    and issubclass(each, Plugin)
    and each.__module__ == "writing_a_plugin"
    and not isabstract(each)
}


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_a_test_of_the_page_passes(test: Callable[[], None]) -> None:
    test()


@pytest.mark.parametrize("block", list(blocks("yaml")), ids=lambda block: f"line {block.line}")
def test_a_configuration_of_the_page_loads(block: Block) -> None:
    known = known_plugins({**registry(), **PLUGINS})

    configuration = load(block.text, known=known, source=f"{PAGE.name}:{block.line}")

    enabled = {
        plugin.name
        for profile in configuration.profiles
        for plugin in profile.points["score"]
        if plugin.name in PLUGINS
    }
    assert enabled == {"Maintenance"}


def test_no_block_of_the_page_is_left_out() -> None:
    languages = {found[1] for found in FENCED.finditer(PAGE.read_text())}
    fences = PAGE.read_text().count("```")

    assert languages == {"python", "yaml", "toml", "console"}
    assert fences == 2 * len(FENCED.findall(PAGE.read_text()))
