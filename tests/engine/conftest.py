"""No engine test passes because the fence caught what it should have shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.driver import engines


@pytest.fixture(autouse=True)
def _nothing_was_caught() -> Iterator[None]:
    engines.clear()
    yield
    made = list(engines)
    engines.clear()
    for each in made:
        assert not each.caught, f"exceptions were caught: {each.caught}"
