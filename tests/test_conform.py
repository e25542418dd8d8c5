"""Verdicts recorded from kube-scheduler: Mooring finds the same for every pod."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.plugins import REGISTRY
from mooring.simulate import golden
from mooring.simulate.conform import conform

RECORDED = sorted((Path(__file__).parent / "golden").glob("*.jsonl.gz"))


def test_there_are_recordings() -> None:
    assert len(RECORDED) == 14


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_verdicts(path: Path) -> None:
    tallies = conform(golden.read(path), REGISTRY)

    assert list(tallies) == [path.name.removesuffix(".jsonl.gz")]
    for tally in tallies.values():
        assert tally.steps >= tally.scenarios > 0
        told = [f"{each.scenario} {each.pod}: {each.what}" for each in tally.differences]
        assert not told, f"{len(told)} differences, the first: {tally.differences[0]}"
