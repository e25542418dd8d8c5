"""Verdicts recorded from kube-scheduler: Mooring finds the same for every pod."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.plugins import REGISTRY
from mooring.simulate import verdicts
from mooring.simulate.conform import conform

RECORDED = sorted((Path(__file__).parent / "golden").glob("*.jsonl.gz"))


def test_there_are_recordings() -> None:
    assert len(RECORDED) == 14


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_verdicts(path: Path) -> None:
    results = conform(verdicts.read_scenarios(path), REGISTRY)

    assert list(results) == [path.name.removesuffix(".jsonl.gz")]
    for result in results.values():
        assert result.steps >= result.scenarios > 0
        told = [f"{each.scenario} {each.pod}: {each.what}" for each in result.differences]
        assert not told, f"{len(told)} differences, the first: {result.differences[0]}"
