"""The notebook runs from its first cell to its last, without what only a notebook has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "cluster-on-your-desk.ipynb"


def test_the_notebook_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(NOTEBOOK.parents[2])
    notebook = json.loads(NOTEBOOK.read_text())
    cells = [each for each in notebook["cells"] if each["cell_type"] == "code"]
    names: dict[str, object] = {"__name__": "notebook"}
    for number, cell in enumerate(cells):
        # What it printed once is not kept: it would be wrong one day.
        assert cell["outputs"] == []
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)

    told = capsys.readouterr().out
    assert "6 nodes, 21 pods" in told
    assert "default     16 placed, 4 pending" in told
    assert told.count("p99") == 2
