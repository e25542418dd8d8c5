"""The example of a node for a job: who shares a node, and what would free another."""

from __future__ import annotations

import json

import pytest

from tests.cli.invoking import Moorage
from tests.docs.pages import DOCS

EXAMPLE = DOCS.parent / "examples" / "coexist-policy" / "launcher-and-workers.yaml"


def test_fit_says_which_evictions_would_free_a_node(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moorage = Moorage(monkeypatch, capsys)
    outcome = json.loads(moorage("fit", "-o", "json", str(EXAMPLE)).out)

    assert {each["pod"]: each["after"] for each in outcome["moves"]} == {
        "default/train-worker-0": "one",
        "default/train-worker-1": "one",
        "default/train-launcher": "one",
        "default/solver": "",
    }
    # The other node is freed by evicting three: the one with the fewest comes first.
    assert outcome["freed"] == [{"node": "two", "pods": ["default/web"]}]
    text = moorage("fit", str(EXAMPLE)).out
    assert "Evicting 1 pod would free 1 node:" in text
