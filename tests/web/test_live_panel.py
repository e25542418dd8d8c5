"""The panel of a pod or a node, the groups of nodes and the events, as they change."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.builders import node, pod
from tests.engine.driver import driver
from tests.web.serving import serving
from tests.web.test_browser import looking, small

# The browser is shared, and so is its loop.
pytestmark = pytest.mark.asyncio(loop_scope="session")

#: Counts, from now on, how often parts of the panel are put in or taken out.
COUNTING = """(place) => {
  window.moved = 0;
  new MutationObserver((all) => {
    for (const each of all) window.moved += each.addedNodes.length + each.removedNodes.length;
  }).observe(place, { childList: true, subtree: true });
}"""


async def _is_unfolded(page: Page) -> bool:
    return bool(await page.locator("#detail-body details").last.get_attribute("open") is not None)


async def test_a_pod_that_is_open_is_renewed_and_what_is_unfolded_stays(browser: Browser) -> None:
    driven = small()
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await page.locator(".pod").click()
        body = page.locator("#detail-body")
        await expect(body.locator(".headline")).to_have_text("Fits no node of 13")
        await expect(page.locator("#detail-when")).to_have_text(
            re.compile(r"^as of \d\d:\d\d:\d\d")
        )
        await body.locator(".rejection").first.click()
        await body.locator("details summary").last.click()
        await body.evaluate(COUNTING)

        # What nodes say to it changes, and the pod itself has not moved: a node is cordoned.
        driven.apply(node("n0", cpu=4, spec={"unschedulable": True}))
        await expect(body.locator(".rejection .number")).to_have_text(["11", "2"])
        await expect(page.locator("#verdicts li").first).to_have_text("NodeResourcesFit 11")
        # Only what is different was touched; the nodes of the bar that was pressed stand out still.
        await expect(body.locator('.rejection[aria-pressed="true"] .number')).to_have_text("11")
        await expect(page.locator(".card.dim")).to_have_count(2)
        assert await _is_unfolded(page)
        assert await page.evaluate("window.moved") < 10

        # Its state changes: there is room, and it is placed.
        driven.apply(node("large", cpu=16))
        driven.now += 100.0
        driven.settle()
        await expect(body.locator(".headline")).to_contain_text("Runs on large")
        assert await _is_unfolded(page)

        # It goes away.
        driven.remove(driven.pods["default/big"])
        await expect(body).to_contain_text("This pod is not there any more")
        await expect(page.locator("#verdicts")).to_be_hidden()


async def test_a_node_that_is_open_is_renewed(browser: Browser) -> None:
    driven = small()
    async with serving(driven.engine) as address, looking(browser, f"{address}#node=n3") as page:
        await expect(page.locator("#pods")).to_have_count(0)
        await page.locator("#detail-body details summary").last.click()
        driven.apply(pod("web", cpu=1, node="n3"))
        await expect(page.locator("#detail-body #pods")).to_contain_text("default/web")
        await expect(page.locator(".use").first).to_contain_text("1 / 4")
        assert await _is_unfolded(page)


async def test_nodes_are_grouped_by_whose_pods_are_on_them(browser: Browser) -> None:
    driven = driver(
        *(node(name, cpu=4) for name in "abcd"),
        pod("one", namespace="shop", cpu=1, memory="1Gi", node="a"),
        pod("two", namespace="ads", cpu=2, node="a"),
        pod("three", namespace="shop", cpu=1, node="b"),
        pod("four", namespace="ads", node="c"),
    )
    heads = "#cards h3"
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await page.locator("#by").select_option("pods:namespace")
        shop, nobody = "shop1 node, 25% of cpu", "without pods1 node, 0% of cpu"
        await expect(page.locator(heads)).to_have_text(["ads2 nodes, 38% of cpu", shop, nobody])
        says = "A node is with the namespace whose pods request most of its cpu; "
        await expect(page.locator("#group-says")).to_have_text(
            f"{says}1 node has pods of several namespaces."
        )
        mixed = page.locator(".card", has_text="ads, 67% of it; pods of 2 namespaces")
        await expect(mixed.locator(".name")).to_have_text("a")

        # Another resource has other users.
        await page.locator("#resource").select_option("memory")
        await expect(page.locator(f"{heads} >> nth=1")).to_contain_text("shop2 nodes")
        await page.locator("#by").select_option("pods:owner")
        await expect(page.locator(heads)).to_contain_text(
            ["pod ads/four", "pod shop/one", "pod shop/three", "without pods"]
        )
        # The link shows others the same, and what changes is seen.
        await page.reload()
        await expect(page.locator(heads)).to_have_count(4)
        driven.apply(pod("five", namespace="new", node="d"))
        await expect(page.locator(f"{heads} >> nth=1")).to_contain_text("pod new/five")


async def test_a_preemption_is_told_with_its_victims(browser: Browser) -> None:
    low = [pod(f"low-{at}", cpu=1, node="n") for at in range(5)]
    driven = driver(node("n", cpu=5), *low)
    async with serving(driven.engine) as address, looking(browser, address) as page:
        await expect(page.locator("#figure-pods")).to_have_text("5")
        driven.apply(pod("high", cpu=5, spec={"priority": 9}))
        driven.step(10)
        line = page.locator("#event-list li")
        await expect(line).to_contain_text(
            re.compile(
                r"default/high evicts (default/low-\d, ){2}default/low-\d and 2 more pods from n"
            )
        )
        await line.locator(".link").first.click()
        await expect(page.locator("#detail-title")).to_have_text("pod default/high")
