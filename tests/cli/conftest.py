"""The `mooring` fixture."""

from __future__ import annotations

import pytest

from tests.cli.invoking import Mooring


@pytest.fixture
def mooring(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Mooring:
    return Mooring(monkeypatch, capsys)
