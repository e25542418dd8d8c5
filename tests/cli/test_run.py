"""`moorage run`: what it says when it cannot start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.invoking import Moorage

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
def test_what_is_wrong_is_told_in_one_line(name: str, moorage: Moorage) -> None:
    options, told = CASES[name]
    ended = moorage("run", *options)

    assert ended.code == 2
    assert told in ended.err
    assert ended.err.count("\n") == 1


def test_a_kubeconfig_without_a_server_names_the_file(moorage: Moorage, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("{apiVersion: v1, kind: Config}")
    ended = moorage("run", f"--kubeconfig={path}")

    assert ended.code == 2
    assert str(path) in ended.err


def test_the_kubeconfig_of_the_configuration_is_used_unless_one_is_given(
    moorage: Moorage, tmp_path: Path
) -> None:
    ours, given = tmp_path / "ours", tmp_path / "given"
    for path in (ours, given):
        path.write_text("{apiVersion: v1, kind: Config}")
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        f"clientConnection: {{kubeconfig: {ours}}}\n"
    )
    by_file = moorage("run", f"--config={config}")
    by_flag = moorage("run", f"--config={config}", f"--kubeconfig={given}")

    assert (by_file.code, by_flag.code) == (2, 2)
    assert str(ours) in by_file.err
    assert str(given) in by_flag.err
