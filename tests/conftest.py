"""What all tests share: how hard hypothesis tries, and the invariant of every cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from mooring.cluster import check
from tests import builders

# Deadlines are left out: a busy machine is not a bug.
settings.register_profile("quick", max_examples=50, deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("quick"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=2_000)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "quick")


@pytest.fixture(autouse=True)
def _clusters_are_sound() -> Iterator[None]:
    """Checks every cluster that a test made through `builders.cluster` once the test is over."""
    builders.made.clear()
    yield
    made = list(builders.made)
    builders.made.clear()
    for each in made:
        check(each)
