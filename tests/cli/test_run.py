"""`mooring run`: what it says when it cannot start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.invoking import Mooring

CASES = {
    "no such kubeconfig": (["--kubeconfig=absent"], "absent"),
    "a duration that is none": (
        ["--leader-elect-lease-duration=fast"],
        "command line: --leader-elect-lease-duration: must be a duration such as 15s",
    ),
    "durations that do not go together": (
        ["--leader-elect-lease-duration=5s"],
        "command line: leaderElection.leaseDuration: must be greater than renewDeadline (10s)",
    ),
    "no such configuration": (["--config=absent.yaml"], "absent.yaml: no such file"),
    "no such gate": (["--feature-gates=Nothing=true"], "Nothing"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_told_in_one_line(name: str, mooring: Mooring) -> None:
    options, told = CASES[name]
    ended = mooring("run", *options)

    assert ended.code == 2
    assert told in ended.err
    assert ended.err.count("\n") == 1


def test_a_kubeconfig_without_a_server_names_the_file(mooring: Mooring, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("{apiVersion: v1, kind: Config}")
    ended = mooring("run", f"--kubeconfig={path}")

    assert ended.code == 2
    assert str(path) in ended.err
