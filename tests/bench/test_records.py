"""How a result came about is told without telling where files are."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.bench.results import provenance, without_folders


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("moorage bench benchmarks --out a/b", "moorage bench benchmarks --out a/b"),
        ("bench {here}/suites ../there/x", "bench suites ../there/x"),
        ("--target={here}/config", "--target=config"),
        ("'{here}/kube-scheduler --config={{config}}'", "'kube-scheduler --config={{config}}'"),
        ("--filter '/(A|(B)?C)/500Nodes$'", "--filter '/(A|(B)?C)/500Nodes$'"),
        ("--filter '/no/such/folder'", "--filter '/no/such/folder'"),
    ],
)
def test_paths_are_cut_down_to_names(tmp_path: Path, text: str, told: str) -> None:
    assert without_folders(text.format(here=tmp_path)) == told.format()


def test_a_command_can_be_repeated_word_by_word() -> None:
    made = provenance(("moorage", "bench", "--filter", "a b|c"), "engine")
    assert made["command"] == "moorage bench --filter 'a b|c'"
    assert made["target"] == "engine"
