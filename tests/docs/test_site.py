"""The docs as a site: every link leads somewhere, in reading order, with search."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browsers import CHROMIUM, MISSING, open_browser, open_context
from tools.site import ROOT, StagedSite, build, navigation

PAGES = {str(page.relative_to(ROOT)) for page in ROOT.glob("docs/*.md")} - {"docs/index.md"}


def test_every_page_is_in_the_reading_order() -> None:
    listed = [page for section in navigation() for pages in section.values() for page in pages]
    paths = [path for page in listed for path in page.values()]

    assert paths[0] == "README.md"
    assert len(paths) == len({*paths})
    assert PAGES - {*paths} == set()
    assert all(title[0].isupper() for page in listed for title in page)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not find_spec("mkdocs"):
        pytest.skip("pip install 'moorage[docs]'")
    made = tmp_path_factory.mktemp("site")
    build(made)
    return made


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
async def test_the_first_answer_is_as_wide_as_the_column(site: Path) -> None:
    async with open_browser() as browser:
        page = await (
            await open_context(browser, viewport={"width": 1440, "height": 900})
        ).new_page()
        await page.goto((site / "index.html").as_uri())
        block = page.locator("pre code").first
        await expect(block).to_contain_text("moorage explain")
        assert await block.evaluate("(each) => each.scrollWidth - each.clientWidth") == 0


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
async def test_search_works_on_a_phone(site: Path) -> None:
    async with open_browser() as browser:
        page = await (
            await open_context(browser, viewport={"width": 390, "height": 844}, has_touch=True)
        ).new_page()
        await page.goto((site / "index.html").as_uri())
        assert await page.evaluate("document.documentElement.scrollWidth") == 390
        await page.locator("label.md-header__button[for=__search]").click()
        await expect(page.locator(".md-search-result__meta")).to_have_text(
            "Type to start searching"
        )
        await page.locator(".md-search__input").press_sequentially("learnReserve")
        await page.locator(".md-search-result__item a").first.click()
        await expect(page).to_have_url(re.compile(r"docs/gpu-aware\.html"))


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
async def test_search_works_on_pages_opened_from_a_disk(site: Path) -> None:
    async with open_browser() as browser:
        context = await open_context(browser)
        page = await context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await page.goto((site / "docs" / "gpu-aware.html").as_uri())
        # It is made ready when somebody comes near.
        await page.locator(".md-search__input").click()
        await expect(page.locator(".md-search-result__meta")).to_have_text(
            "Type to start searching"
        )
        await page.locator(".md-search__input").press_sequentially("learnReserve")
        found = page.locator(".md-search-result__item").first
        await expect(found).to_contain_text("Keeping GPU nodes for GPU pods")
        await found.locator("a").first.click()
        await expect(page).to_have_url(re.compile(r"docs/gpu-aware\.html"))

    # It needs nobody else's server.
    assert {url.partition(":")[0] for url in asked} <= {"file", "data"}


def test_it_is_built_without_a_warning(site: Path) -> None:
    texts = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    assert any("moorage explain" in each["text"] for each in texts)
    index = (site / "index.html").read_text()
    assert "googleapis" not in index
    assert (site / "docs" / "images" / "page.png").exists()
    assert (site / "deploy" / "base" / "rbac.yaml").exists()
    assert (site / "docs" / "decisions" / "0016-budgets.html").exists()


def test_links_to_folders_lead_to_a_list_of_their_files(tmp_path: Path) -> None:
    staged = StagedSite(tmp_path)
    staged.add(ROOT / "docs" / "architecture.md")

    text = (tmp_path / "docs" / "architecture.md").read_text()
    assert "[Decisions](decisions/files.md)" in text
    listed = (tmp_path / "docs" / "decisions" / "files.md").read_text()
    assert "](0016-budgets.md)" in listed
    # What a page links to comes along.
    assert (tmp_path / "docs" / "glossary.md").exists()
