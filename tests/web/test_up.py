"""The page of `moorage up --demo` in a browser, by the address that it prints."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, expect

from tests.browsers import open_context
from tests.patience import PATIENCE_SECONDS
from tests.web.test_browser import looking

# The browser is shared, and so is its loop.
pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def _demo(*flags: str) -> AsyncIterator[str]:
    """The address of the page, while the story is told."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "moorage", "up", "--demo", "--no-browser", *flags),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (line := await process.stdout.readline()).startswith(b"Its page: "):
                assert line
        yield line.decode().removeprefix("Its page: ").strip()
    finally:
        process.kill()
        await process.communicate()


async def test_a_browser_sees_the_story_and_others_are_asked_for_the_token(
    browser: Browser,
) -> None:
    async with _demo("--pace=2") as address, looking(browser, address) as page:
        await expect(page.locator("#figure-nodes")).to_have_text(re.compile(r"^1\d\d$"))
        await expect(page).to_have_url(re.compile("/ui/$"))
        await expect(page.locator("#figure-pods")).not_to_have_text("0")

        another = await open_context(browser)
        stranger = await another.new_page()
        await stranger.goto(re.sub("enter/.*", "enter/wrong", address))
        await expect(stranger.locator("#login")).to_be_visible()
        await expect(stranger.locator("#figure-nodes")).not_to_contain_text(re.compile("[0-9]"))
        await another.close()
