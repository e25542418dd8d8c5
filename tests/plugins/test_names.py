"""What serves all plugins knows none of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import moorage
from tests.registered import PLUGINS

SOURCES = Path(moorage.__file__).parent
NAMES = re.compile(rf"\b(?:{'|'.join(plugin.name for plugin in PLUGINS)})\b")
IMPORT = re.compile(r"^\s*(?:from|import) moorage\.plugins\b")


@pytest.mark.parametrize(
    "where",
    ["framework/advice.py", "framework/edits", "web", "app/performer.py", "cluster", "queue"],
)
def test_no_plugin_is_named(where: str) -> None:
    found = [
        f"{file.relative_to(SOURCES)}:{number}: {line.strip()}"
        for file in find_sources(SOURCES / where)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if NAMES.search(line) or IMPORT.search(line)
    ]

    assert not found


def test_the_search_finds_names() -> None:
    """Without it, a renamed folder would pass."""
    assert any(NAMES.search(file.read_text()) for file in find_sources(SOURCES / "plugins"))
    assert NAMES.search('order = ("NodeResourcesFit", "DiskIO")')
    assert not NAMES.search("pod.node_name, nodeName")


def find_sources(place: Path) -> Iterator[Path]:
    found = [place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.js")]
    assert found, f"nothing is at {place}"
    yield from found
