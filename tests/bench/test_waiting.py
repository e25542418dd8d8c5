"""Updates that help nobody: no waiting pod is asked, whatever it waits for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from moorage.bench.waiting import SORTS, WaitingBenchmark, main, run
from moorage.queue.queue_events import Listeners


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("sort", SORTS)
def test_no_pod_is_asked(sort: str, alike: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(Listeners, "answer", lambda self, queued, event: asked.append(queued))

    costs = list(run(6, 10, f"{sort}, {'alike' if alike else 'each its own'}"))

    assert asked == []
    assert {cost.waiting for cost in costs} == {6}


@pytest.mark.parametrize("sort", SORTS)
def test_every_sort_of_pod_waits(sort: str) -> None:
    room = WaitingBenchmark(sort, 3, alike=False)

    assert room.engine.queue.sizes()["unschedulable"] == 3


def test_figures_are_printed_and_written(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    options = ["--pods", "2", "--only", "ports, alike", "--out", str(out)]
    result = CliRunner().invoke(main, options)

    assert "ports, alike" in result.output
    assert '"waiting":2' in out.read_text()
