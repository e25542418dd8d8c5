"""The README's first screen is true."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest

from moorage.config.kubernetes_versions import VERSIONS
from tests.cli.invoking import Moorage
from tests.docs.pages import DOCS, blocks

README = DOCS.parent / "README.md"


def test_the_example_is_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is left out."""
    (block,) = blocks(README, "console")
    asked, _, shown = block.text.partition("\n")
    monkeypatch.chdir(README.parent)

    assert Moorage(monkeypatch, capsys)(*shlex.split(asked)[2:]).out == shown


def test_the_question_comes_first_and_one_line_installs() -> None:
    text = README.read_text()

    assert text.index("**Why is my pod pending?**") < text.index("```console")
    (line,) = re.findall(r"^    (pip install .+)$", text, re.MULTILINE)
    # There is no release yet.
    assert line.startswith("pip install .  ")


def test_the_badges_say_what_is_declared() -> None:
    project = tomllib.loads((README.parent / "pyproject.toml").read_text())["project"]
    minors = [each.rpartition(" ")[2] for each in project["classifiers"] if ":: 3." in each]
    versions = [each.name for each in VERSIONS]

    assert f"python-{minors[0]}_to_{minors[-1]}-" in README.read_text()
    assert f"kubernetes-{'_and_'.join(versions)}-" in README.read_text()


def test_the_figure_is_the_measured_one() -> None:
    text = README.read_text()
    (claimed,) = re.findall(r"About ([\d,]+) pods a second on 5,000 nodes", text)
    results = (DOCS / "benchmarks.md").read_text()
    (measured,) = re.findall(r"^\| plain pods \| 5,000 \| ([\d,]+) \|", results, re.MULTILINE)

    ratio = int(measured.replace(",", "")) / int(claimed.replace(",", ""))
    assert 0.95 < ratio < 1.4
