"""The page in a browser, over an engine that is driven here."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, expect

from mooring.web import Entry
from mooring.web import StatusPage as ServedPage
from tests.builders import node, pod
from tests.engine.driver import Driver, driver
from tests.web.cluster_show import Show
from tests.web.serving import serving

SCREENSHOT = Path(__file__).parents[2] / "docs" / "images" / "page.png"

EVIL = "<img src=x onerror=alert(1)><script>alert(1)</script>"


@asynccontextmanager
async def looking(browser: Browser, address: str, **options: Any) -> AsyncIterator[Page]:
    """The page, on which no script may fail and no policy be violated."""
    context = await browser.new_context(**options)
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", _noting(complaints))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    await page.goto(address)
    yield page
    await context.close()
    assert complaints == []


def _noting(complaints: list[str]) -> Callable[[ConsoleMessage], None]:
    def note(message: ConsoleMessage) -> None:
        # A server that is away, or says no, is told by the browser itself.
        if message.type == "error" and "Failed to load resource" not in message.text:
            complaints.append(message.text)

    return note


def small() -> Driver:
    driven = driver(
        *(node(f"n{at}", cpu=4) for at in range(12)),
        node("closed", spec={"unschedulable": True}),
        pod("big", cpu=9),
    )
    driven.settle()
    return driven


async def test_it_is_live(browser: Browser) -> None:
    driven = small()
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await expect(page.locator("#status")).to_have_text("Live")
        await expect(page.locator("#figure-nodes")).to_have_text("13")
        await expect(page.locator("#figure-pods")).to_have_text("0")
        await expect(page.locator("#resource option")).to_have_text(["cpu", "memory", "pods"])
        await expect(page.locator(".pod")).to_have_count(1)

        driven.apply(*(pod(f"web-{at}", cpu=1) for at in range(5)), pod("big-2", cpu=9))
        driven.settle()

        await expect(page.locator("#figure-pods")).to_have_text("5")
        await expect(page.locator(".pod")).to_have_count(2)
        await expect(page.locator("#now-decisions")).to_contain_text(re.compile("[0-9]"))

        driven.remove(*list(driven.pods.values()))
        await expect(page.locator(".pod")).to_have_count(0)
        await expect(page.locator("#figure-pods")).to_have_text("0")


async def test_a_pod_and_a_node_are_explained(browser: Browser) -> None:
    driven = small()
    driven.apply(pod("web", cpu=1))
    driven.settle()
    where = driven.node_of("web")
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await page.locator(".pod").click()
        await expect(page.locator("#detail-title")).to_have_text("Pod default/big")
        await expect(page.locator("#detail-body")).to_contain_text("12 Insufficient cpu")
        await page.locator("#detail-close").click()
        await expect(page.locator("#detail")).to_be_hidden()

        await page.locator("#search").fill("web")
        await page.locator("#found li").first.click()
        await page.locator("#detail-body .link").click()
        await expect(page.locator("#detail-title")).to_have_text(f"Node {where}")
        await expect(page.locator("#detail-body")).to_contain_text("default/web")
        await expect(page.locator("#detail-body")).to_contain_text("1 / 4")


async def test_it_comes_back_when_the_server_does(browser: Browser) -> None:
    driven = small()
    # More pods than wait afterwards: those of before must be forgotten.
    driven.apply(pod("big-2", cpu=9), pod("big-3", cpu=9))
    async with serving(driven.engine) as address:
        port = int(address.split(":")[2].split("/")[0])
        looked = looking(browser, address)
        page = await looked.__aenter__()
        await expect(page.locator("#figure-nodes")).to_have_text("13")
    await expect(page.locator("#status")).to_contain_text("does not answer")

    fresh = driver(node("only"), pod("alone", cpu=9))
    fresh.settle()
    async with serving(fresh.engine, port=port):
        await expect(page.locator("#status")).to_have_text("Live", timeout=15_000)
        await expect(page.locator("#figure-nodes")).to_have_text("1")
        await expect(page.locator(".pod")).to_have_count(1)
        await expect(page.locator(".pod")).to_contain_text("default/alone")
        await looked.__aexit__(None, None, None)


async def test_names_are_text(browser: Browser) -> None:
    driven = driver(node(EVIL, cpu=4, labels={"l": EVIL}), pod(EVIL, cpu=9))
    driven.settle()
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await expect(page.locator(".pod div").first).to_have_text(f"default/{EVIL}")
        await page.locator("#table summary").click()
        await page.locator("#table-body .link").click()
        await expect(page.locator("#detail-title")).to_have_text(f"Node {EVIL}")
        await expect(page.locator("#detail-body")).to_contain_text(EVIL)
        await page.locator("#search").fill("onerror")
        await expect(page.locator("#found li").first).to_have_text(f"node {EVIL}")
        assert await page.locator("img, body script").count() == 0


async def test_the_keyboard_is_enough(browser: Browser) -> None:
    driven = small()
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await expect(page.locator("#figure-nodes")).to_have_text("13")
        await page.locator("#map").focus()
        await expect(page.locator("#map-now")).to_contain_text("closed: 0.0% of cpu, cordoned")
        await page.keyboard.press("ArrowRight")
        await expect(page.locator("#map-now")).to_contain_text("n0: 0.0% of cpu")
        await page.keyboard.press("Enter")
        await expect(page.locator("#detail-title")).to_have_text("Node n0")
        await expect(page.locator("#detail-title")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(page.locator("#detail")).to_be_hidden()
        await expect(page.locator("#map")).to_be_focused()

        await page.keyboard.press("/")
        await page.keyboard.type("n1")
        await expect(page.locator("#found li").first).to_have_text("node n1")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page.locator("#detail-title")).to_have_text("Node n10")
        await page.keyboard.press("Escape")

        await page.locator("#queue-list").focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("#detail-title")).to_have_text("Pod default/big")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_phone(browser: Browser, scheme: Literal["light", "dark"]) -> None:
    driven = small()
    size = {"width": 360, "height": 740}
    async with (
        serving(driven.engine) as address,
        looking(browser, address, viewport=size, color_scheme=scheme, has_touch=True) as page,
    ):
        await expect(page.locator("#figure-nodes")).to_have_text("13")
        wide = await page.evaluate("document.documentElement.scrollWidth")
        paper = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        await page.locator(".pod").tap()
        await expect(page.locator("#detail-body")).to_contain_text("Insufficient cpu")
        box = await page.locator("#detail").bounding_box()

    assert wide == 360
    assert box is not None
    assert (box["x"], box["width"]) == (0, 360)
    assert paper == {"light": "rgb(247, 248, 250)", "dark": "rgb(16, 21, 27)"}[scheme]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_fuller_nodes_look_different(
    browser: Browser, scheme: Literal["light", "dark"]
) -> None:
    driven = driver(node("a", cpu=4), node("b", cpu=4), pod("x", cpu=4, node="b"))
    async with (
        serving(driven.engine) as address,
        looking(browser, address, color_scheme=scheme) as page,
    ):
        await expect(page.locator("#figure-nodes")).to_have_text("2")
        reading = """() => [10, 54].map((x) => [...document.getElementById("map")
            .getContext("2d").getImageData(x, 10, 1, 1).data].slice(0, 3))"""
        empty, full = await page.evaluate(reading)
        await page.locator("#resource").select_option("memory")
        await page.wait_for_function(f"JSON.stringify(({reading})()[1]) === '{_json(empty)}'")

    brightness = sum(full) - sum(empty)
    assert brightness > 250 if scheme == "dark" else brightness < -250


def _json(values: list[int]) -> str:
    return "[" + ",".join(map(str, values)) + "]"


async def test_whoever_has_no_token_is_asked_for_it(browser: Browser) -> None:
    driven, entry = small(), Entry()
    served = ServedPage(driven.engine)
    guards = [entry.guard(served, "/ui/")]
    async with (
        serving(driven.engine, page=served, guards=guards) as address,
        looking(browser, address) as page,
    ):
        await expect(page.locator("#login")).to_be_visible()
        await page.locator("#token").fill("wrong")
        await page.keyboard.press("Enter")
        await expect(page.locator("#login-why")).to_contain_text("Unauthorized")
        await page.locator("#token").fill(entry.token)
        await page.keyboard.press("Enter")
        await expect(page.locator("#figure-nodes")).to_have_text("13")
        await expect(page.locator("#login")).to_be_hidden()
        assert entry.token not in page.url


async def test_a_large_cluster(browser: Browser) -> None:
    """All of it arrives, and little of it is in the document."""
    made = Show()
    made.add_nodes(1_000)
    made.add_pods(2_000)
    while made.step():
        pass
    made.add_pods(3_000, template=3)
    async with serving(made.engine) as address, looking(browser, address) as page:
        await expect(page.locator("#queue-count")).to_have_text("3,000 pods")
        made.add_pods(500)
        while made.step(500):
            await page.wait_for_timeout(1)

        await expect(page.locator("#figure-pods")).to_have_text("2,500")
        assert await page.locator(".pod").count() < 40
        await page.locator("#queue-list").focus()
        await page.keyboard.press("End")
        await expect(page.locator('.pod[aria-selected="true"]')).to_have_attribute(
            "aria-posinset", "3000"
        )


@pytest.mark.skipif(not os.environ.get("MOORING_SCREENSHOTS"), reason="see `make screenshots`")
async def test_picture_for_the_docs(browser: Browser) -> None:
    made = Show()
    made.add_nodes(1_000)
    made.add_pods(7_000)
    while made.step():
        pass
    size = {"width": 1280, "height": 800}
    async with serving(made.engine) as address, looking(browser, address, viewport=size) as page:
        await expect(page.locator("#status")).to_have_text("Live")
        made.add_pods(30, template=3)
        churning = asyncio.create_task(made.churn(400, 9_000))
        await page.wait_for_timeout(25_000)
        SCREENSHOT.parent.mkdir(exist_ok=True)
        await page.screenshot(path=SCREENSHOT)
        churning.cancel()

    assert SCREENSHOT.stat().st_size < 300_000
