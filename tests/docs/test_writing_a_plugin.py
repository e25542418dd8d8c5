"""The code of docs/writing-a-plugin.md runs, and its configurations load."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isabstract

import pytest

from moorage.config import load
from moorage.engine.registry import registry
from moorage.framework.plugin import Plugin
from moorage.framework.profile import known_plugins
from tests.docs.pages import DOCS, Block, blocks, languages, run

PAGE = DOCS / "writing-a-plugin.md"

NAMESPACE = run("writing_a_plugin", *blocks(PAGE, "python"))
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


@pytest.mark.parametrize(
    "block", list(blocks(PAGE, "yaml")), ids=lambda block: f"line {block.line}"
)
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
    assert languages(PAGE) == {"python", "yaml", "toml", "console"}
