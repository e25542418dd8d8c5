"""The docs as a site: every link leads somewhere, in reading order, with search."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.site import ROOT, StagedSite, build, navigation

PAGES = {str(page.relative_to(ROOT)) for page in ROOT.glob("docs/*.md")} - {"docs/index.md"}


def test_every_page_is_in_the_reading_order() -> None:
    listed = [page for section in navigation() for pages in section.values() for page in pages]
    paths = [path for page in listed for path in page.values()]

    assert paths[0] == "README.md"
    assert len(paths) == len({*paths})
    assert PAGES - {*paths} == set()
    assert all(title[0].isupper() for page in listed for title in page)


@pytest.mark.skipif(not find_spec("mkdocs"), reason="pip install 'mooring[docs]'")
def test_it_is_built_without_a_warning(tmp_path: Path) -> None:
    build(tmp_path)

    texts = json.loads((tmp_path / "search" / "search_index.json").read_text())["docs"]
    assert any("mooring explain" in each["text"] for each in texts)
    index = (tmp_path / "index.html").read_text()
    # It needs nobody else's server.
    assert "googleapis" not in index
    assert (tmp_path / "docs" / "images" / "page.png").exists()
    assert (tmp_path / "deploy" / "base" / "rbac.yaml").exists()
    assert (tmp_path / "docs" / "decisions" / "0016-budgets.html").exists()


def test_links_to_folders_lead_to_a_list_of_their_files(tmp_path: Path) -> None:
    staged = StagedSite(tmp_path)
    staged.add(ROOT / "docs" / "architecture.md")

    text = (tmp_path / "docs" / "architecture.md").read_text()
    assert "[Decisions](decisions/files.md)" in text
    listed = (tmp_path / "docs" / "decisions" / "files.md").read_text()
    assert "](0016-budgets.md)" in listed
    # What a page links to comes along.
    assert (tmp_path / "docs" / "glossary.md").exists()
