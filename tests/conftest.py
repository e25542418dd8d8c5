"""What all tests share: how hard hypothesis tries, and the invariant of every cluster."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from moorage.cluster import check
from tests import builders

# A busy machine is not a bug: examples have no deadline, and may take long to make. What is tried
# is the same each time, so that a failure is due to a change. `--hypothesis-profile=search` tries
# other and more examples.
settings.register_profile(
    "same",
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
    print_blob=True,
    database=None,
)
settings.register_profile(
    "search", settings.get_profile("same"), max_examples=1_000, derandomize=False
)
settings.load_profile("same")


_unfreeze = gc.unfreeze


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leaves modules and tests out of every later garbage collection: there are many of them.

    A benchmark unfreezes everything when it ends. Were these unfrozen with it, each collection in
    the tests that follow in the same process would search them all.
    """
    gc.collect()
    gc.freeze()
    patch = pytest.MonkeyPatch()
    patch.setattr(gc, "unfreeze", lambda: None)
    session.config.add_cleanup(patch.undo)


@pytest.fixture
def real_unfreeze(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets a test unfreeze objects, and freezes them again when it is over."""
    with monkeypatch.context() as patch:
        patch.setattr(gc, "unfreeze", _unfreeze)
        yield
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
