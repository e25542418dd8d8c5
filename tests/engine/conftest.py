"""No engine test passes because the fence caught what it should have shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moorage.config.kubernetes_versions import VERSIONS, KubernetesVersion
from tests.engine import gangs
from tests.engine.driver import engines


@pytest.fixture(params=VERSIONS, ids=lambda version: version.name)
def each_version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets gangs be placed as each version does."""
    version: KubernetesVersion = request.param
    monkeypatch.setattr(gangs, "followed", version)


@pytest.fixture(autouse=True)
def _nothing_was_caught() -> Iterator[None]:
    engines.clear()
    yield
    made = list(engines)
    engines.clear()
    for each in made:
        assert not each.caught, f"exceptions were caught: {each.caught}"
