"""CONTRIBUTING points to files that exist, and the index lists every page of the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
QUESTIONS = dict(re.findall(r"^\| (.+\?) \| `(.+)` \|$", PAGE, re.MULTILINE))
PATHS = sorted(
    {
        path
        for path in re.findall(r"`([\w./-]+)`", PAGE)
        if path.startswith(("src/", "tests/", "docs/", "deploy/"))
    }
)


def test_there_are_thirteen_questions() -> None:
    assert len(QUESTIONS) == 13


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_file_that_answers_a_question_exists(question: str) -> None:
    assert (ROOT / QUESTIONS[question]).is_file(), f"update CONTRIBUTING.md: {question}"


@pytest.mark.parametrize("path", PATHS)
def test_a_path_of_the_page_exists(path: str) -> None:
    assert (ROOT / path).exists(), "update CONTRIBUTING.md"


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs/index.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert {page for page in pages if f"]({page})" not in index} == set()


@pytest.mark.parametrize(
    "path",
    [
        ".pre-commit-config.yaml",
        *(str(each.relative_to(ROOT)) for each in (ROOT / ".github").rglob("*.yml")),
    ],
)
def test_the_files_of_the_forge_are_yaml(path: str) -> None:
    assert yaml.safe_load((ROOT / path).read_text())


def test_continuous_integration_runs_every_python_that_is_promised() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    promised = re.findall(r"Python :: (3\.\d+)", project)
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == promised
