"""The notebook runs from its first cell to its last, and what its cells show is short."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "cluster-on-your-desk.ipynb"


def run_cell(source: str, title: str, names: dict[str, object]) -> str:
    """Runs a cell as a notebook does; returns its last value as it is shown, empty for None."""
    tree = ast.parse(source, title)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, title, "exec"), names)
    if not isinstance(last, ast.Expr):
        return ""
    value = eval(compile(ast.Expression(last.value), title, "eval"), names)
    show = getattr(value, "_repr_html_", None)
    return "" if value is None else str(show() if show is not None else repr(value))


def test_the_notebook_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(NOTEBOOK.parents[2])
    notebook = json.loads(NOTEBOOK.read_text())
    cells = [each for each in notebook["cells"] if each["cell_type"] == "code"]
    names: dict[str, object] = {"__name__": "notebook"}
    shown = []
    for number, cell in enumerate(cells):
        # What it printed once is not kept: it would be wrong one day.
        assert cell["outputs"] == []
        shown.append(run_cell("".join(cell["source"]), f"cell {number}", names))

    printed = capsys.readouterr().out
    assert shown[0].startswith("<p><b>6 nodes (1 cordoned), 21 pods")
    assert "requested.nvidia.com/gpu" in "".join(shown)
    assert max(map(len, shown)) < 20_000
    assert "without b1   8 more of shop/cache-0 would fit" in printed
    assert "default     16 placed, 4 pending" in printed
    assert printed.count("p99") == 2
