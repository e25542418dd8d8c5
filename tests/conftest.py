"""What all tests share: how hard hypothesis tries, and the invariant of every cluster."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

from mooring.cluster import check
from tests import builders

# Deadlines are left out: a busy machine is not a bug. What is tried is the same each time, so that
# a failure is due to a change. `--hypothesis-profile=search` tries other and more examples.
settings.register_profile(
    "same", max_examples=20, deadline=None, derandomize=True, print_blob=True, database=None
)
settings.register_profile(
    "search", settings.get_profile("same"), max_examples=1_000, derandomize=False
)
settings.load_profile("same")


def pytest_collection_finish() -> None:
    """Leaves modules and tests out of every later garbage collection: there are many of them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _clusters_are_sound() -> Iterator[None]:
    """Checks every cluster that a test made through `builders.cluster` once the test is over."""
    builders.made.clear()
    yield
    made = list(builders.made)
    builders.made.clear()
    for each in made:
        check(each)
