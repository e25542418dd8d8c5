"""The `moorage` fixture."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.cli.invoking import Moorage


@pytest.fixture
def moorage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Moorage]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield Moorage(monkeypatch, capsys)
    # Commands send the log to what is captured here, which is closed when the test ends.
    root.handlers[:] = handlers
    root.setLevel(level)
