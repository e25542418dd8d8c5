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

from moorage.web import PageAccess, StatusPage as ServedPage
from tests.browsers import open_context
from tests.builders import node, pod
from tests.device_builders import resource_slice
from tests.engine.driver import Driver, driver
from tests.engine.gangs import drive_gangs, gang, members
from tests.patience import until
from tests.ports import free_port
from tests.web.cluster_show import Show
from tests.web.serving import serving

SCREENSHOTS = Path(__file__).parents[2] / "docs" / "images"

# The browser is shared, and so is its loop.
pytestmark = pytest.mark.asyncio(loop_scope="session")

takes_pictures = pytest.mark.skipif(
    not os.environ.get("MOORAGE_SCREENSHOTS"),
    reason="takes pictures for the docs (make screenshots)",
)

EVIL = "<img src=x onerror=alert(1)><script>alert(1)</script>"


@asynccontextmanager
async def looking(browser: Browser, address: str, **options: Any) -> AsyncIterator[Page]:
    """The page, on which no script may fail and no policy be violated."""
    context = await open_context(browser, **options)
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
        await expect(page.locator(".card")).to_have_count(13)
        await expect(page.locator("#event-list")).to_contain_text("Nothing has happened")

        driven.apply(*(pod(f"web-{at}", cpu=1) for at in range(5)), pod("big-2", cpu=9))
        driven.settle()

        await expect(page.locator("#figure-pods")).to_have_text("5")
        await expect(page.locator(".pod")).to_have_count(2)
        await expect(page.locator(".tile").first).to_contain_text("5 of 52")
        await expect(page.locator("#event-list")).to_contain_text("default/web-0 placed on n")
        await expect(page.locator("#event-list")).to_contain_text("default/big-2 not placed: 0/13")
        await expect(page.locator("#now-decisions")).to_contain_text(re.compile("[0-9]"))

        driven.remove(*list(driven.pods.values()))
        await expect(page.locator(".pod")).to_have_count(0)
        await expect(page.locator("#queue-tree")).to_contain_text("No pod waits.")
        await expect(page.locator("#figure-pods")).to_have_text("0")


async def test_a_pod_is_explained_as_on_the_command_line(browser: Browser) -> None:
    driven = small()
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await page.locator(".pod").click()
        body = page.locator("#detail-body")
        await expect(page.locator("#detail-title")).to_have_text("pod default/big")
        await expect(body.locator(".headline")).to_have_text("Fits no node of 13")
        await expect(body.locator(".message")).to_contain_text("12 Insufficient cpu")
        await expect(body.locator(".remedy").first).to_contain_text("no node is this large")
        await expect(body.locator(".remedy", has_text="if it asked for 5 less cpu")).to_be_visible()
        await expect(body.locator(".rejection").first).to_contain_text("NodeResourcesFit")
        await expect(body.locator(".rejection .number").first).to_have_text("12")
        # The nodes have the colours of what they say, and those of a bar stand out.
        await expect(page.locator("#verdicts li")).to_have_text(
            ["NodeResourcesFit 12", "NodeUnschedulable 1"]
        )
        await expect(page.locator(".card.judged").first).to_contain_text("NodeUnschedulable")
        await body.locator(".rejection").first.click()
        await expect(page.locator(".card.dim")).to_have_count(1)
        # All of the answer is there under the names that it has elsewhere.
        await body.locator(".folded summary").last.click()
        await expect(body.locator(".folded dt", has_text="feasibleCount")).to_be_visible()

        await page.locator(".card", has_text="n3").click()
        await expect(body.locator(".answer")).to_contain_text("Node n3 does not take it")
        link = page.url

        await page.go_back()
        await expect(body.locator(".answer")).to_have_count(0)
        await page.locator("#detail-close").click()
        await expect(page.locator("#detail")).to_be_hidden()
        await expect(page.locator("#verdicts")).to_be_hidden()
    # A link shows others the same.
    port = int(link.split(":")[2].split("/")[0])
    async with serving(driven.engine, port=port), looking(browser, link) as page:
        await expect(page.locator(".answer")).to_contain_text("Node n3 does not take it")
        await expect(page.locator("#detail-title")).to_have_text("pod default/big")


async def test_an_open_panel_follows_its_pod(browser: Browser) -> None:
    driven = small()
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await page.locator(".pod").click()
        await expect(page.locator(".headline")).to_have_text("Fits no node of 13")
        driven.apply(node("roomy", cpu=16))
        driven.settle()
        assert driven.node_of("big") == "roomy"
        await expect(page.locator(".headline")).to_contain_text("Runs on roomy")
        await expect(page.locator(".card.judged", has_text="roomy")).to_contain_text("takes it")
        driven.remove(driven.pods["default/big"])
        await expect(page.locator("#detail-body")).to_contain_text("not there any more")


async def test_a_node_is_explained(browser: Browser) -> None:
    driven = small()
    driven.apply(pod("web", cpu=1))
    driven.settle()
    where = driven.node_of("web")
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await page.locator("#search").fill("web")
        await page.locator("#found li").first.click()
        await expect(page.locator(".headline")).to_contain_text(f"Runs on {where}")
        await page.locator("#detail-body > p .link").first.click()
        await expect(page.locator("#detail-title")).to_have_text(f"node {where}")
        await expect(page.locator("#detail-body")).to_contain_text("default/web")
        await expect(page.locator("#detail-body")).to_contain_text("1 / 4")
        await page.locator(".folded summary").click()
        await expect(page.locator(".folded dt")).to_have_text(["kubernetes.io/hostname"])


async def test_nodes_are_grouped_sorted_and_filtered(browser: Browser) -> None:
    pools = {"a": "general", "b": "gpu", "c": "general"}
    nodes = [node(name, cpu=4, labels={"pool": pool}) for name, pool in pools.items()]
    driven = driver(*nodes, node("d", cpu=4), pod("x", cpu=4, node="c"))
    names = "#cards .card .name"
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await expect(page.locator(names)).to_have_text(["a", "b", "c", "d"])
        await page.locator("#sort").select_option("most")
        await expect(page.locator(names)).to_have_text(["c", "a", "b", "d"])
        await page.locator("#by").select_option("pool")
        await expect(page.locator("#cards h3")).to_have_text(
            [
                "general2 nodes, 50% of cpu",
                "gpu1 node, 0% of cpu",
                "without the label1 node, 0% of cpu",
            ]
        )
        await page.locator("#filter").fill("pool=general")
        await expect(page.locator(names)).to_have_text(["c", "a"])
        await page.locator("#filter").fill("pool=general a")
        await expect(page.locator(names)).to_have_text(["a"])
        await expect(page.locator("#nodes-count")).to_have_text("1 of 4 nodes")
        await page.reload()
        await expect(page.locator(names)).to_have_text(["a"])
        await page.locator("#filter").fill("nobody")
        await expect(page.locator("#nodes-empty")).to_have_text("No node matches the filter.")


async def test_the_queue_is_grouped(browser: Browser) -> None:
    made = Show()
    made.add_nodes(2)
    made.add_pods(7, template=3)
    while made.step():
        pass
    tree = "#queue-tree [role=treeitem]"
    async with serving(made.engine) as address, looking(browser, address) as page:
        await expect(page.locator(tree)).to_have_count(1)
        await expect(page.locator(tree)).to_contain_text("job research/huge")
        await expect(page.locator(f"{tree} .number")).to_have_text("7")
        await page.locator(tree).click()
        await expect(page.locator(tree)).to_have_count(8)
        await page.locator("#only-by").fill("huge-5")
        await expect(page.locator(tree)).to_have_count(2)
        await page.locator("#queue-by").select_option("none")
        await expect(page.locator(tree)).to_have_count(1)
        await expect(page.locator("#queue-count")).to_have_text("1 of 7 pods")


async def test_who_uses_what(browser: Browser) -> None:
    made = Show()
    made.add_nodes(3)
    made.add_pods(4, template=0)
    made.add_pods(1, template=3)
    while made.step():
        pass
    async with serving(made.engine) as address, looking(browser, address) as page:
        rows = page.locator("#usage-body tbody tr")
        await expect(rows.nth(0)).to_contain_text(re.compile("shop4.*1 · 1.8%"))
        await expect(rows.nth(1)).to_contain_text("research")
        await rows.nth(0).locator(".link").click()
        await expect(page.locator("#verdicts")).to_contain_text("nodes with pods of namespace shop")
        await page.locator("#verdicts .link").click()
        await expect(page.locator("#verdicts")).to_be_hidden()
        await page.locator("#tab-namespace").focus()
        await page.keyboard.press("ArrowRight")
        await expect(page.locator("#usage-body")).to_contain_text("statefulset shop/web")
        tabs = {"gangs": "No pod groups.", "devices": "No devices by claim"}
        for tab, says in {**tabs, "exclusive": "No pod has a node to itself."}.items():
            await page.locator(f"#tab-{tab}").click()
            await expect(page.locator("#usage-body")).to_contain_text(says)
        await page.locator("#tab-batching").click()
        await expect(rows.nth(0)).to_contain_text(re.compile("default-scheduler5.*3 · 60%"))
        await expect(page.locator("#usage-body")).to_contain_text("No plugin keeps pods apart")


async def test_gangs_and_devices_are_listed(browser: Browser) -> None:
    driven = drive_gangs(
        node("n", cpu=4), gang("runs", 2), *members("runs", 2, cpu=1), resource_slice("n", 2)
    )
    driven.settle()
    driven.apply(gang("waits", 2), *members("waits", 2, cpu=3))
    driven.settle()
    async with serving(driven.engine) as address, looking(browser, f"{address}#tab=gangs") as page:
        rows = page.locator("#usage-body tbody tr")
        await expect(rows.nth(0)).to_contain_text("default/waitsat least 20 of 2")
        await expect(rows.nth(1)).to_contain_text("default/runsat least 22 of 2")
        await rows.nth(0).locator(".link").click()
        await expect(page.locator(".headline")).to_contain_text("Waits with its gang default/waits")
        told = "2 x 3 cpu: 2 wait, 0 have a node, minCount is 2. Anywhere: room for 0, 2 short."
        await expect(page.locator(".gang .arithmetic")).to_have_text(told)
        await page.locator("#tab-devices").click()
        await expect(rows).to_have_text(["gpu.example.com120 taken"])


async def test_it_comes_back_when_the_server_does(browser: Browser) -> None:
    driven = small()
    # More pods than wait afterwards: those of before must be forgotten.
    driven.apply(pod("big-2", cpu=9), pod("big-3", cpu=9))
    port = free_port()
    async with serving(driven.engine, port=port) as address:
        looked = looking(browser, address)
        page = await looked.__aenter__()
        await expect(page.locator("#figure-nodes")).to_have_text("13")
    await expect(page.locator("#status")).to_contain_text("does not answer")

    fresh = driver(node("only"), pod("alone", cpu=9))
    fresh.settle()
    async with serving(fresh.engine, port=port):
        await expect(page.locator("#status")).to_have_text("Live")
        await expect(page.locator("#figure-nodes")).to_have_text("1")
        await expect(page.locator(".pod")).to_have_count(1)
        await expect(page.locator(".pod")).to_contain_text("default/alone")
        await looked.__aexit__(None, None, None)


async def test_names_are_text(browser: Browser) -> None:
    driven = driver(node(EVIL, cpu=4, labels={"l": EVIL}), pod(EVIL, cpu=9))
    driven.settle()
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await expect(page.locator(".pod .who")).to_have_text(f"default/{EVIL}")
        await expect(page.locator(".card .name")).to_have_text(EVIL)
        await page.locator("#table summary").click()
        await page.locator("#table-body .link").click()
        await expect(page.locator("#detail-title")).to_have_text(f"node {EVIL}")
        await page.locator(".folded summary").click()
        await expect(page.locator("#detail-body")).to_contain_text(EVIL)
        await page.locator("#search").fill("onerror")
        await expect(page.locator("#found li").first).to_have_text(f"node {EVIL}")
        assert await page.locator("img, body script").count() == 0


async def test_the_keyboard_is_enough(browser: Browser) -> None:
    driven = small()
    driven.apply(*(node(f"m{at}", cpu=4) for at in range(60)))
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await expect(page.locator("#figure-nodes")).to_have_text("73")
        await page.locator("#map").focus()
        await expect(page.locator("#map-now")).to_contain_text("closed: 0.0% of cpu, cordoned")
        await page.keyboard.press("ArrowRight")
        await expect(page.locator("#map-now")).to_contain_text("m0: 0.0% of cpu")
        await page.keyboard.press("Enter")
        await expect(page.locator("#detail-title")).to_have_text("node m0")
        await expect(page.locator("#detail-title")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(page.locator("#detail")).to_be_hidden()
        await expect(page.locator("#map")).to_be_focused()

        await page.keyboard.press("/")
        await page.keyboard.type("n1")
        await expect(page.locator("#found li").first).to_have_text("node n1")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page.locator("#detail-title")).to_have_text("node n10")
        await page.keyboard.press("Escape")

        await page.locator("#queue-tree").focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("#detail-title")).to_have_text("pod default/big")


async def test_controls_have_names_for_screen_readers(browser: Browser) -> None:
    name = "ip-10-0-0-1.eu-central-1.compute.internal"
    driven = driver(node(name, cpu=4, gpu=1), pod("big", cpu=9))
    driven.settle()
    async with serving(driven.engine) as address, looking(browser, address) as page:
        # Names are whole, although lines may end at their dots.
        card = page.get_by_role("button", name=f"{name} cpu 0%")
        await expect(card).to_be_visible()
        await expect(page.get_by_role("button", name="example.com/gpu 0%").first).to_be_visible()
        await page.locator(".pod").click()
        rejection = page.get_by_role("button", name=f"such as {name}")
        await expect(rejection).to_be_visible()
        told = await page.locator("body").aria_snapshot()
        controls = "button|combobox|searchbox|tab|tree|treeitem|log|region|complementary|tabpanel"
        assert re.findall(rf"- (?:{controls})(?::|$| \[).*", told, re.MULTILINE) == []


async def test_cards_and_charts_are_read_with_the_keyboard(browser: Browser) -> None:
    driven = small()
    async with serving(driven.engine) as address, looking(browser, address) as page:
        # One card is in the order of Tab; arrows go to the others.
        await page.locator("#filter").fill("n1")
        await expect(page.locator("#cards .card")).to_have_count(3)
        await page.locator("#cards .card").first.focus()
        await page.keyboard.press("ArrowRight")
        await expect(page.locator(".card", has_text="n10")).to_be_focused()
        assert await page.locator('#cards .card[tabindex="0"]').count() == 1

        await expect(page.locator("#now-waiting")).to_have_text("1")
        await page.locator("#chart-waiting").focus()
        await page.keyboard.press("ArrowLeft")
        await expect(page.locator("#chart-waiting + .readout")).to_have_text(
            re.compile(r"^\d\d:\d\d:\d\d: 1$")
        )


async def test_rejections_that_differ_in_whether_evicting_helps(browser: Browser) -> None:
    driven = driver(
        node("small", cpu=4),
        node("full", cpu=16),
        pod("runs", node="full", cpu=12),
        pod("big", cpu=9),
    )
    driven.settle()
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await page.locator(".pod").click()
        await expect(page.locator("#verdicts li")).to_have_text(
            [
                "NodeResourcesFit: Insufficient cpu 1",
                "NodeResourcesFit: Insufficient cpu, even without other pods 1",
            ]
        )
        await expect(page.locator(".rejection").nth(1)).to_contain_text("even without other pods")


#: What is wider than the window, or than what it is in, and cannot be scrolled to.
CUT = """(width) => [...document.querySelectorAll("body *")].filter((each) => {
  const box = each.getBoundingClientRect(), style = getComputedStyle(each);
  if (!box.width || box.right < 0 || each.closest("#flights, select")) return false;
  const hides = /hidden|clip/.test(style.overflowX) && !each.matches(".bar");
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = style.font;
  const room = each.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  if (each.placeholder && pen.measureText(each.placeholder).width > room) return true;
  return box.right > width + 1 || (hides && each.scrollWidth > each.clientWidth + 1);
}).map((each) => `${each.tagName}#${each.id}.${each.className}: ${each.textContent}`)"""
#: Parts of names, between dots, that go on in the next line.
BROKEN = """() => [...document.querySelectorAll("#cards .name .part")]
  .filter((each) => each.offsetHeight > 1.5 * parseFloat(getComputedStyle(each).lineHeight))
  .map((each) => each.textContent)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_nothing_is_cut_off(browser: Browser, scheme: Literal["light", "dark"]) -> None:
    """Long names as clouds give them, at the widths of phones, tablets, laptops and desks."""
    ending = ".eu-central-1.compute.internal.example-company.com"
    cloud = [
        node(f"ip-10-0-0-{at}{ending}", cpu=4, gpu=at % 2, labels={"pool": "p" * 60})
        for at in range(5)
    ]
    long = "recommendation-service-of-the-shop-with-a-name-of-63-characters"
    driven = driver(*cloud, pod(long, namespace="n" * 63, cpu=9), pod("runs", cpu=1))
    driven.settle()
    async with (
        serving(driven.engine) as address,
        looking(browser, address, color_scheme=scheme, has_touch=True) as page,
    ):
        await expect(page.locator("#figure-nodes")).to_have_text("5")
        await page.locator("#by").select_option("pool")
        for width in (390, 768, 1440, 1920):
            await page.set_viewport_size({"width": width, "height": 844})
            assert await page.evaluate("document.documentElement.scrollWidth") == width
            assert await page.evaluate(CUT, width) == []
            assert await page.evaluate(BROKEN) == []
            await page.locator(".pod").click()
            await expect(page.locator(".remedy", has_text="less cpu")).to_be_visible()
            assert await page.evaluate(CUT, width) == []
            box = await page.locator("#detail").bounding_box()
            assert box is not None
            assert box["x"] + box["width"] == width
            await page.locator("#detail-close").click()
            await expect(page.locator("#detail")).to_be_hidden()
        paper = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        # The other theme can be chosen.
        await page.locator("#theme").click()
        other = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")

    themes = {"light": "rgb(244, 246, 249)", "dark": "rgb(16, 21, 27)"}
    assert paper == themes.pop(scheme)
    assert [other] == list(themes.values())


async def test_a_link_to_a_pod_shows_the_nodes_on_a_phone(browser: Browser) -> None:
    """The first visitor gets the nodes a moment later than the figures."""
    driven = small()
    phone = {"width": 390, "height": 844}
    async with (
        serving(driven.engine) as address,
        looking(browser, f"{address}#pod=default/big", viewport=phone) as page,
    ):
        await expect(page.locator(".remedy").first).to_be_visible()
        await expect(page.locator(".card.judged").first).to_be_visible()
        panel = await page.locator("#detail").bounding_box()
        for part in (page.locator("#verdicts"), page.locator(".card.judged").first):
            box = await part.bounding_box()
            assert panel is not None
            assert box is not None
            assert box["y"] >= 0
            assert box["y"] + box["height"] < panel["y"]


async def test_the_head_of_a_panel_is_one_line_on_a_tablet(browser: Browser) -> None:
    """Name and buttons are beside each other, and no empty line follows them."""
    driven = small()
    tablet = {"width": 768, "height": 1024}
    async with (
        serving(driven.engine) as address,
        looking(browser, f"{address}#node=closed", viewport=tablet) as page,
    ):
        await expect(page.locator("#detail-body > h3").first).to_be_visible()
        middles = await page.locator("#detail > .tools > *").evaluate_all(
            """(parts) => parts.map((each) => each.getBoundingClientRect())
              .filter((box) => box.height).map((box) => (box.top + box.bottom) / 2)"""
        )
        assert max(middles) - min(middles) < 12
        first = page.locator("#detail-body > :first-child")
        border = await first.evaluate("(each) => getComputedStyle(each).borderTopWidth")
        assert border == "0px"


async def test_labels_of_cells_are_words_on_a_phone(browser: Browser) -> None:
    driven = drive_gangs(node("n", cpu=4), gang("waits", 2), *members("waits", 2, cpu=3))
    driven.settle()
    phone = {"width": 390, "height": 844}
    async with (
        serving(driven.engine) as address,
        looking(browser, f"{address}#tab=gangs", viewport=phone) as page,
    ):
        cell = page.locator('#usage-body td[data-label="why it waits"]')
        await expect(cell).to_contain_text("its pods wait")
        width = await cell.evaluate(
            "(each) => parseFloat(getComputedStyle(each, '::before').width)"
        )
        assert width > 70
        figures = (
            "() => [...document.querySelectorAll('#figures div')].map((each) => each.offsetLeft)"
        )
        left = await page.evaluate(figures)
        assert left[:2] == left[2:]


async def test_totals_are_in_one_row_on_a_large_screen(browser: Browser) -> None:
    amounts = {f"example.com/part-{at}": 4 for at in range(3)}
    driven = driver(node("n", cpu=4, memory="8Gi", gpu=1, **amounts))
    large = {"width": 1920, "height": 1080}
    async with serving(driven.engine) as address, looking(browser, address, viewport=large) as page:
        await expect(page.locator(".tile")).to_have_count(7)
        tops = "() => [...document.querySelectorAll('.tile')].map((each) => each.offsetTop)"
        assert len(set(await page.evaluate(tops))) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_fuller_nodes_look_different(
    browser: Browser, scheme: Literal["light", "dark"]
) -> None:
    nodes = [node(f"n{at}", cpu=4) for at in range(60)]
    driven = driver(*nodes, pod("x", cpu=4, node="n7"))
    async with (
        serving(driven.engine) as address,
        looking(browser, f"{address}#sort=most", color_scheme=scheme) as page,
    ):
        await expect(page.locator("#figure-nodes")).to_have_text("60")
        full = await _first_pixel_other_than(page, [0, 0, 0])
        await page.locator("#sort").select_option("least")
        empty = await _first_pixel_other_than(page, full)

    brightness = sum(full) - sum(empty)
    assert brightness > 250 if scheme == "dark" else brightness < -250


async def _first_pixel_other_than(page: Page, before: list[int]) -> list[int]:
    """Waits until a pixel of the first node has another color, and returns that color.

    It asks from here: the page's security policy forbids the polling of `wait_for_function`.
    """
    reading = """() => [...document.getElementById("map")
        .getContext("2d").getImageData(8, 8, 1, 1).data].slice(0, 3)"""

    async def look() -> list[int]:
        color: list[int] = await page.evaluate(reading)
        return color if color != before else []

    return await until(look, f"another color than {before}")


async def test_whoever_has_no_token_is_asked_for_it(browser: Browser) -> None:
    driven, entry = small(), PageAccess()
    served = ServedPage(driven.engine)
    guards = [entry.guard(served, "/ui/")]
    async with (
        serving(driven.engine, page=served, guards=guards) as address,
        looking(browser, address) as page,
    ):
        await expect(page.locator("#login")).to_be_visible()
        await expect(page.locator("#login-why")).to_have_text(re.compile("give its token"))
        # There is nothing to find or to share.
        await expect(page.locator("#search")).to_be_hidden()
        await expect(page.locator("#share")).to_be_hidden()
        await page.locator("#token").fill("wrong")
        await page.keyboard.press("Enter")
        await expect(page.locator("#login-why")).to_contain_text("Unauthorized")
        await page.locator("#token").fill(entry.token)
        await page.keyboard.press("Enter")
        await expect(page.locator("#figure-nodes")).to_have_text("13")
        await expect(page.locator("#login")).to_be_hidden()
        await expect(page.locator("#share")).to_be_visible()
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
        # One line stands for all pods of a job; of long lists the beginning is in the document.
        await expect(page.locator("#queue-tree [role=treeitem]")).to_have_count(1)
        await page.locator("#queue-tree").focus()
        await page.keyboard.press("ArrowRight")
        await expect(page.locator(".pod").first).to_be_visible()
        assert await page.locator(".pod").count() < 100
        await page.keyboard.press("End")
        await expect(page.locator('.pod[aria-selected="true"]')).to_contain_text("huge-5000")


@takes_pictures
async def test_picture_for_the_docs(browser: Browser) -> None:
    made = Show()
    made.add_nodes(1_000)
    made.add_pods(7_000)
    while made.step():
        pass
    size = {"width": 1440, "height": 900}
    async with (
        serving(made.engine) as address,
        looking(browser, f"{address}#by=topology.kubernetes.io/zone", viewport=size) as page,
    ):
        await expect(page.locator("#status")).to_have_text("Live")
        made.add_pods(30, template=3)
        churning = asyncio.create_task(made.churn(400, 9_000))
        await page.wait_for_timeout(5_000)
        await _take_picture(page, "page.png")
        churning.cancel()


@takes_pictures
async def test_picture_of_a_pod_for_the_docs(browser: Browser) -> None:
    async with (
        serving(shop().engine) as address,
        looking(browser, f"{address}#by=pool", viewport={"width": 1440, "height": 900}) as page,
    ):
        await page.locator(".pod", has_text="train").click()
        await expect(page.locator(".remedy").first).to_be_visible()
        await _take_picture(page, "page-pod.png")


def shop() -> Driver:
    """A cluster of 18 nodes in two pools with a pod that fits nowhere."""
    taint = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
    gpus = [
        node(
            f"gpu-{at}",
            cpu=16,
            memory="64Gi",
            gpu=4 if at else 8,
            labels={"pool": "gpu"},
            spec={"taints": [taint]},
        )
        for at in range(6)
    ]
    plain = [node(f"web-{at}", cpu=8, memory="32Gi", labels={"pool": "web"}) for at in range(12)]
    driven = driver(*gpus, *plain)
    driven.apply(*(pod(f"front-{at}", cpu=1, memory="2Gi") for at in range(40)))
    driven.apply(pod("train", namespace="research", cpu=8, memory="48Gi", gpu=8))
    driven.settle()
    return driven


async def _take_picture(page: Page, name: str) -> None:
    path = SCREENSHOTS / name
    path.parent.mkdir(exist_ok=True)
    await page.screenshot(path=path)
    assert path.stat().st_size < 300_000
