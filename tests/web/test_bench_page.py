"""The page of benchmark results in a browser: on a phone and on a desk, in light and in dark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, Page, expect

from moorage.bench.harness import Growth, ProgressPoint
from moorage.bench.result_page import page as written
from tests.bench.workloads import MEASURED, NODES, Runs, case, job
from tests.browsers import open_context

# The browser is shared, and so is its loop.
pytestmark = pytest.mark.asyncio(loop_scope="session")

RUN: dict[str, str | int | float] = {"command": "moorage bench " + "a/very/long/path/" * 20}

#: How light a colour is, from 0 to 255, as people see it.
LIGHTNESS = """element => {
  const [r, g, b] = getComputedStyle(element).PROPERTY.match(/[\\d.]+/g).map(Number);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}"""


async def lightness(page: Page, selector: str, property_name: str) -> float:
    script = LIGHTNESS.replace("PROPERTY", property_name)
    return float(await page.locator(selector).first.evaluate(script))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A page with everything that there is on one."""
    workload = job(tmp_path, case(NODES, MEASURED, name="A" * 80))
    results = [replace(Runs()(workload), by=by) for by in ("one", "other")]
    missing = {"opcode": "allocResourceClaims", "namespace": "n"}
    results.append(Runs()(job(tmp_path, case(missing, MEASURED))))
    growth = Growth("grown", (ProgressPoint(1000, 5, 1e-3), ProgressPoint(100_000, 5, 2e-3)), ())
    path = tmp_path / "results.html"
    path.write_text(written(results, [growth], RUN))
    return path


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_fits_and_can_be_read(
    browser: Browser, file: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    size = {"width": width, "height": 800}
    context = await open_context(browser, viewport=size, color_scheme=scheme)
    page = await context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(file.as_uri())

    assert asked == [file.as_uri()]
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    await expect(page.get_by_role("img")).to_have_count(4)
    await expect(page.get_by_role("region", name="Figures")).to_be_visible()
    ink = await lightness(page, "svg text", "fill")
    paper = await lightness(page, "figure", "backgroundColor")
    assert (ink - paper > 150) if scheme == "dark" else (paper - ink > 150)
    for svg in await page.locator("svg").all():
        outside = await svg.evaluate(
            "svg => [...svg.querySelectorAll('text')].filter(text => {"
            "  const box = text.getBoundingClientRect(), all = svg.getBoundingClientRect();"
            "  return box.left < all.left - 1 || box.right > all.right + 1;"
            "}).map(text => text.textContent)"
        )
        assert outside == []
    await context.close()
