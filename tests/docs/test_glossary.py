"""The glossary defines words that the code uses, each once, in order."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_TEXT = (ROOT / "docs" / "glossary.md").read_text()
_ENTRIES = re.findall(r"^\*\*(.+?)\.\*\*", _TEXT, re.MULTILINE)
_TERMS = [term for entry in _ENTRIES for term in entry.split(", ")]


@cache
def _source() -> str:
    """All code in lower case, names split into words."""
    text = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", text).lower()


@pytest.mark.parametrize("term", _TERMS)
def test_the_code_uses_a_word_of_the_glossary(term: str) -> None:
    words = r"[ -]?".join(re.findall(r"[a-z]+", term.lower()))
    assert re.search(rf"\b{words}s?\b", _source())


@pytest.mark.parametrize("module", re.findall(r"`([a-z]+(?:\.[a-z_]+)+)", _TEXT))
def test_a_module_of_the_glossary_exists(module: str) -> None:
    path = ROOT / "src" / "moorage" / Path(*module.split("."))
    assert path.with_suffix(".py").exists() or path.is_dir()


def test_words_are_in_order_and_defined_once() -> None:
    assert [pair for pair in pairwise(_ENTRIES) if pair[0].lower() >= pair[1].lower()] == []


def test_it_is_short_enough_to_be_read() -> None:
    assert len(_ENTRIES) <= 30
