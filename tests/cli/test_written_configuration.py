"""A configuration that kube-scheduler itself has written is read as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from moorage.config import FeatureGates, default, load
from moorage.config.kubernetes_versions import VERSIONS, read_version
from moorage.engine.registry import registry
from moorage.framework.profile import known_plugins
from moorage.plugins.volumes.volume_binding import SHAPE
from tests.cli.invoking import Moorage
from tests.live.control_plane import binaries
from tests.patience import PATIENCE_SECONDS

#: By the gates that were switched on, as 1.36 and 1.37 know them.
GATES = {
    "": {"1.36": "", "1.37": ""},
    "-gangs": {
        "1.36": "GenericWorkload=true,GangScheduling=true",
        "1.37": "GenericWorkload=true",
    },
    "-groups": {
        "1.36": "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true,"
        "WorkloadAwarePreemption=true",
        "1.37": "GenericWorkload=true,TopologyAwareWorkloadScheduling=true",
    },
}
FILES = [(version.name, suffix) for version in VERSIONS for suffix in GATES]
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def written(version: str, suffix: str) -> Path:
    return Path(__file__).parent / "written" / f"{version}{suffix}.yaml"


@pytest.mark.parametrize(("version", "suffix"), FILES)
@pytest.mark.parametrize("switched", [True, False], ids=["gates on", "gates off"])
def test_it_says_what_is_the_default(version: str, suffix: str, switched: bool) -> None:
    known = known_plugins(registry())
    text = GATES[suffix][version] if switched else ""
    gates = FeatureGates.from_text(text, version=read_version(version))

    read = load(written(version, suffix).read_bytes(), known=known, gates=gates)

    (found,), (usual,) = read.profiles, default(known, gates).profiles
    if version == "1.37":
        # This is written out, and it is the shape of those who give none.
        args = usual.args["VolumeBinding"]
        assert args is not None
        args = msgspec.structs.replace(args, shape=SHAPE)
        usual = msgspec.structs.replace(usual, args={**usual.args, "VolumeBinding": args})
    assert found == usual


@pytest.mark.parametrize(("version", "suffix"), FILES)
def test_decisions_are_those_of_the_default(moorage: Moorage, version: str, suffix: str) -> None:
    command = ["simulate", "examples/demo", "--emulation-version", version]
    if GATES[suffix][version]:
        command += ["--feature-gates", GATES[suffix][version]]

    assert moorage(*command, "--config", str(written(version, suffix))).out == moorage(*command).out


@pytest.mark.parametrize(("version", "suffix"), FILES)
def test_kube_scheduler_writes_the_same_today(tmp_path: Path, version: str, suffix: str) -> None:
    folder = binaries()
    program = folder / "kube-scheduler" if folder else None
    if program is None or not program.exists():
        pytest.skip("no kube-scheduler in $KUBEBUILDER_ASSETS")
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    if not told.stdout.startswith(f"Kubernetes v{version}."):
        pytest.skip(f"another version than {version}: {told.stdout.strip()}")
    kubeconfig, file = tmp_path / "kubeconfig", tmp_path / "written.yaml"
    kubeconfig.write_text(KUBECONFIG)
    command = [str(program), "--kubeconfig", str(kubeconfig), "--write-config-to", str(file)]
    if GATES[suffix][version]:
        command += ["--feature-gates", GATES[suffix][version]]

    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_SECONDS)

    assert file.read_text().replace(f"kubeconfig: {kubeconfig}", 'kubeconfig: ""') == (
        written(version, suffix).read_text()
    )
