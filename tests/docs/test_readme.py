"""The README's first screen is true."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.cli.invoking import Moorage
from tests.docs.pages import DOCS, blocks

README = DOCS.parent / "README.md"


def test_the_example_is_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In order; … stands for lines that are left out."""
    (block,) = blocks(README, "console")
    asked, *shown = block.text.splitlines()
    monkeypatch.chdir(README.parent)

    printed = iter(Moorage(monkeypatch, capsys)(*shlex.split(asked)[2:]).out.splitlines())

    assert len(shown) <= 12
    for line in shown:
        assert line == "…" or line in printed, f"{line} is not printed, or not there"


def test_the_figure_is_the_measured_one() -> None:
    text = README.read_text()
    (claimed,) = re.findall(r"About ([\d,]+) pods a second on 5,000 nodes", text)
    (measured,) = re.findall(r"^\| plain pods \| 5,000 \| ([\d,]+) \|", text, re.MULTILINE)

    ratio = int(measured.replace(",", "")) / int(claimed.replace(",", ""))
    assert 0.95 < ratio < 1.4
