"""A browser, where there is one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser

from tests.browsers import open_browser
from tests.programs import need_program


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests; each test has a profile of its own in it."""
    need_program("chromium")
    async with open_browser() as opened:
        yield opened
