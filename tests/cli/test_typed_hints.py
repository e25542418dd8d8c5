"""The commands that Moorage prints are typed as they are printed, in another terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.builders import node_manifest, pod_manifest
from tests.cli.invoking import Moorage
from tests.embedded.kubectl import needs_kubectl
from tests.programs import find_assets, needs_program

_PLUGIN = Path("examples/tutorial/new_nodes_only.py")
_SHOWN = "kubectl get pod hello -o jsonpath='{.spec.nodeName}'"


@contextmanager
def _up(*flags: str) -> Iterator[tuple[str, ...]]:
    """Runs a cluster; yields the commands that it prints, each as one line or several."""
    command = (sys.executable, "-m", "moorage", "up", *flags)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            text = "".join(iter(process.stdout.readline, "Ctrl-C stops the cluster.\n"))
            hints = text.partition("In another terminal:\n")[2].partition("\n\n")[0]
            joined = re.sub(r"(\\|\|)\n +", lambda found: f"{found[1]}\n", hints)
            yield tuple(
                line.strip().replace("\0", "\n")
                for line in re.sub(r"(?<=[\\|])\n", "\0", joined).splitlines()
                if not line.strip().startswith("#")
            )
        finally:
            process.terminate()


def _type(command: str, kubeconfig: str = "") -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(find_assets()), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "KUBECONFIG": kubeconfig}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def _wait_for_place(kubeconfig: str) -> None:
    # As long as it takes: a pod that is never placed is a hang.
    while not _type(_SHOWN, kubeconfig).stdout:
        time.sleep(0.1)


@needs_kubectl
@needs_program("curl")
def test_all_that_up_prints(tmp_path: Path) -> None:
    plugin = str(_PLUGIN.absolute())
    with _up(f"--kubeconfig={tmp_path / 'config'}", f"--plugins={plugin}") as hints:
        export, *others = hints
        assert export == f"export KUBECONFIG={tmp_path / 'config'}"
        kubeconfig = export.removeprefix("export KUBECONFIG=")
        assert len(others) == 7
        seen = {}
        for hint in others:
            done = _type(hint, kubeconfig)
            # 1: not all of the thousand fit.
            assert done.returncode == (1 if "--count" in hint else 0), (hint, done.stderr)
            if "run hello" in hint:
                _wait_for_place(kubeconfig)
            seen[hint] = done

    (explained,) = (each for hint, each in seen.items() if "explain hello" in hint)
    # The scheduler answers: it has the plugin, which is not given here.
    assert "--plugins" not in shlex.join(hint for hint in seen if "explain hello" in hint)
    assert "the answer of the scheduler at http://127.0.0.1:" in explained.stderr
    (placed,) = (each for hint, each in seen.items() if "--count" in hint)
    assert "of 1,000 pods fit" in placed.stdout


@needs_kubectl
def test_other_options_than_the_schedulers_are_noted(tmp_path: Path) -> None:
    config = str(tmp_path / "config")
    with _up(f"--kubeconfig={config}", f"--plugins={_PLUGIN.absolute()}"):
        asked = f"{shlex.quote(sys.executable)} -m moorage explain"
        noted = _type(asked, config)
        (flags,) = re.findall(
            r"this cluster's scheduler has other options; add them: (.+)\n", noted.stderr
        )
        assert _type(f"{asked} {flags}", config).stderr == ""


@pytest.mark.parametrize("command", ["explain", "fit", "simulate"])
def test_what_answers_print(moorage: Moorage, tmp_path: Path, command: str) -> None:
    """Names that were meant, and `-o json` for what is cut off."""
    file = tmp_path / "cluster.json"
    pods = [pod_manifest(f"p{at}", cpu=1) for at in range(30)]
    huge = pod_manifest("huge", cpu=64, spec={"nodeSelector": {"zone": "a"}})
    file.write_text("\n".join(map(json.dumps, (node_manifest("n", cpu=40), *pods, huge))))

    shown = moorage(command, str(file))
    assert shown.code == 1
    for flag in re.findall(r"see (-o json)", shown.out):
        printed = moorage(command, str(file), *flag.split())
        assert json.loads(printed.out)
    meant = moorage("explain", "hug", str(file)).err
    (name,) = re.findall(r"did you mean (.+)\?", meant)
    assert moorage("explain", name, str(file)).out.startswith("pod default/huge fits no node")
