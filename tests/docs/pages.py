"""The fenced blocks of a page: code that runs, configurations that load."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: Path
    text: str
    line: int


def blocks(page: Path, language: str) -> Iterator[Block]:
    text = page.read_text()
    for found in FENCED.finditer(text):
        if found[1] == language:
            yield Block(page, found[2], text.count("\n", 0, found.start(2)))


def languages(page: Path) -> set[str]:
    """The languages of all blocks; every fence belongs to one."""
    text = page.read_text()
    assert text.count("```") == 2 * len(FENCED.findall(text))
    return {found[1] for found in FENCED.finditer(text)}


def run(name: str, *code: Block) -> dict[str, Any]:
    """Runs blocks one after the other; tracebacks point into the page."""
    # Dataclasses look for the module that they are in.
    module = sys.modules[name] = ModuleType(name)
    for block in code:
        # Leading empty lines make the line numbers those of the page.
        text = "\n" * block.line + block.text
        exec(compile(text, str(block.page), "exec", dont_inherit=True), vars(module))
    return vars(module)
