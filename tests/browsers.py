"""Chromium as the distribution packages it, with the patience of `tests/patience.py`."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, BrowserContext, async_playwright, expect

from tests.patience import PATIENCE_SECONDS

#: The rest of what a browser does by itself has no place in a test.
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_PATIENCE_MILLISECONDS = 1_000 * PATIENCE_SECONDS

expect.set_options(timeout=_PATIENCE_MILLISECONDS)

CHROMIUM = shutil.which("chromium")
MISSING = "needs Chromium: no chromium on the path (apt-get install chromium)"


@asynccontextmanager
async def open_browser() -> AsyncIterator[Browser]:
    """A browser for as long as the context lasts."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*_FLAGS], timeout=_PATIENCE_MILLISECONDS
        )
        yield browser
        await browser.close()


async def open_context(browser: Browser, **options: Any) -> BrowserContext:
    """A profile of its own."""
    context = await browser.new_context(**options)
    context.set_default_timeout(_PATIENCE_MILLISECONDS)
    return context
