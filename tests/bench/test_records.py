"""How a result came about is told without telling where files are."""

from __future__ import annotations

import pytest

from mooring.bench.records import provenance, without_folders


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mooring bench benchmarks --out a/b", "mooring bench benchmarks --out a/b"),
        ("bench /home/me/suites ../there/x", "bench suites ../there/x"),
        ("--target=/home/me/.kube/config", "--target=config"),
        ("'/opt/k8s/bin/kube-scheduler --config={config}'", "'kube-scheduler --config={config}'"),
        (
            "--filter '/(A/5000Nodes|B/(C)?D/5000Nodes)$'",
            "--filter '/(A/5000Nodes|B/(C)?D/5000Nodes)$'",
        ),
    ],
)
def test_absolute_paths_are_cut_down_to_names(text: str, told: str) -> None:
    assert without_folders(text) == told


def test_a_command_can_be_repeated_word_by_word() -> None:
    made = provenance(("mooring", "bench", "--filter", "a b|c"), "engine")
    assert made["command"] == "mooring bench --filter 'a b|c'"
    assert made["target"] == "engine"
