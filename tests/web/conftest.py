"""A browser, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from tests.patience import PATIENCE_SECONDS

#: The rest of what a browser does by itself has no place in a test.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

expect.set_options(timeout=1_000 * PATIENCE_SECONDS)

CHROMIUM = shutil.which("chromium")
MISSING = "chromium is not installed: the browser tests are skipped (apt-get install chromium)"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what was left out even where skipped tests are only counted."""
    if CHROMIUM is None:
        terminalreporter.write_line(MISSING, yellow=True)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Chromium as the distribution packages it, once; each test has a profile of its own in it."""
    if CHROMIUM is None:
        pytest.skip(MISSING)
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield launched
        await launched.close()
