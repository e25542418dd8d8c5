"""The tutorial, typed into a terminal with a cluster beside it.

`python -m tests.docs.test_tutorial` writes what is printed into the page, to be read before it is
committed.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, blocks
from tests.docs.transcripts import Terminal, rewrite, steps

PAGE = DOCS / "tutorial.md"
ROOT = DOCS.parent
POLICY = ROOT / "examples" / "tutorial" / "new_nodes_only.py"
CLUSTER = "mooring up --nodes examples/embedded/nodes.yaml --kubeconfig kubeconfig"

# A busy machine takes its time; what hangs is noticed.
_PATIENCE_SECONDS = 300

needs_kubectl = pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl in the path")


@contextmanager
def terminal(folder: Path) -> Iterator[Terminal]:
    """A terminal as the page has its reader prepare it, with the cluster in another."""
    kubeconfig = folder / "kubeconfig"
    variables = {
        **os.environ,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "KUBECONFIG": str(kubeconfig),
        "COLUMNS": "200",
    }

    def typed(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env=variables,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        return done.stdout + done.stderr

    command = CLUSTER.removesuffix("kubeconfig") + str(kubeconfig)
    with subprocess.Popen(
        command.split(), cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True
    ) as cluster:
        try:
            assert cluster.stdout is not None
            assert cluster.stdout.readline().startswith("The cluster is ready: ")
            yield typed
        finally:
            cluster.terminate()


@needs_kubectl
def test_what_is_shown_is_what_is_printed(tmp_path: Path) -> None:
    with terminal(tmp_path) as typed:
        for step in steps(PAGE):
            assert typed(step.command) == step.shown, step.command


def test_the_cluster_is_the_one_that_is_told() -> None:
    shell = [block.text for block in blocks(PAGE, "sh")]
    assert any(CLUSTER in text.splitlines() for text in shell)


def test_the_policy_is_the_one_of_the_file() -> None:
    (shown,) = blocks(PAGE, "python")
    classes = [
        each for each in ast.parse(POLICY.read_text()).body if isinstance(each, ast.ClassDef)
    ]
    assert [ast.unparse(each) for each in classes] == [ast.unparse(ast.parse(shown.text))]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, terminal(Path(made)) as at_work:
        rewrite(PAGE, at_work)
