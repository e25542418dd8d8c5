"""The code of docs/permits.md runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.docs.pages import DOCS, blocks, languages, run

PAGE = DOCS / "permits.md"

NAMESPACE = run("permits", *blocks(PAGE, "python"))
TESTS = {name: each for name, each in NAMESPACE.items() if name.startswith("test_")}


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_a_test_of_the_page_passes(test: Callable[[], None]) -> None:
    test()


def test_no_block_of_the_page_is_left_out() -> None:
    assert languages(PAGE) == {"python"}
