"""Modules and files that the pages name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/moorage"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")])
PATH = re.compile(r"`((?:src|tests|tools|docs|deploy|examples|benchmarks)/[\w./-]+)`")
# Such as `app.worker` or `engine.classes.batch`; `gangs.trial` is in the engine.
MODULE = re.compile(r"`((?:[a-z]\w*\.)+[a-z]\w*)`")
PARENTS = (SOURCE, SOURCE / "engine")
# Attributes of objects whose name is that of a package.
NOT_MODULES = {"engine.handles.kinds"}


def check_module(name: str) -> None:
    """Checks that a dotted name is a module, or a name in one, if it begins with a package."""
    *folders, last = name.split(".")
    parent = next((each for each in PARENTS if (each / folders[0]).is_dir()), None)
    if parent is None or name in NOT_MODULES:
        return
    folder = parent.joinpath(*folders)
    if (folder / last).is_dir() or (folder / f"{last}.py").exists():
        return
    content = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    assert content.exists(), f"{name} is not there"
    assert re.search(rf"\b{last}\b", content.read_text()), f"{last} is not in {content.name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_of_a_page_exist(page: Path) -> None:
    for name in MODULE.findall(page.read_text()):
        check_module(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_a_page_exist(page: Path) -> None:
    for path in PATH.findall(page.read_text()):
        assert (ROOT / path).exists(), f"{path} is not there"


@pytest.mark.parametrize("name", ["app.absent_one", "app.worker.absent_one", "gangs.absent_one"])
def test_an_absent_module_is_found(name: str) -> None:
    with pytest.raises(AssertionError):
        check_module(name)
