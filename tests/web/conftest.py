"""A browser, where there is one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browsers import CHROMIUM, MISSING, open_browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests; each test has a profile of its own in it."""
    if CHROMIUM is None:
        pytest.skip(MISSING)
    async with open_browser() as opened:
        yield opened
