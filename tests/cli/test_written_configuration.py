"""A configuration that kube-scheduler itself has written is read as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

from moorage.config import FeatureGates, default, load
from moorage.engine.registry import registry
from moorage.framework.profile import known_plugins
from tests.cli.invoking import Moorage
from tests.patience import PATIENCE_SECONDS
from tests.programs import need_program

WRITTEN = Path(__file__).with_name("written-by-kube-scheduler.yaml")
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def test_it_says_what_is_the_default() -> None:
    known = known_plugins(registry())

    written = load(WRITTEN.read_bytes(), known=known, gates=FeatureGates())

    assert written.profiles == default(known).profiles


def test_decisions_are_those_of_the_default(moorage: Moorage) -> None:
    assert (
        moorage("simulate", "examples/demo", "--config", str(WRITTEN)).out
        == moorage("simulate", "examples/demo").out
    )


def test_kube_scheduler_writes_the_same_today(tmp_path: Path) -> None:
    program = need_program("kube-scheduler")
    kubeconfig, written = tmp_path / "kubeconfig", tmp_path / "written.yaml"
    kubeconfig.write_text(KUBECONFIG)
    command = [program, "--kubeconfig", str(kubeconfig), "--write-config-to", str(written)]

    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_SECONDS)

    assert written.read_text().replace(f"kubeconfig: {kubeconfig}", 'kubeconfig: ""') == (
        WRITTEN.read_text()
    )
