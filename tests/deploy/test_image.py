"""The image for production has no embedded cluster, and runs without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as the Dockerfile installs them."""
    folder = tmp_path_factory.mktemp("image")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    removed = re.search(r"^RUN rm -r (.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert removed is not None
    for path in removed[1].split():
        shutil.rmtree(folder / path)
    assert not (folder / "src" / "moorage" / "embedded").exists()
    return folder


def _moorage(image: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(image / "src")}
    return subprocess.run(
        [sys.executable, "-m", "moorage", *arguments],
        cwd=image,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_run_needs_no_embedded_cluster(image: Path) -> None:
    done = _moorage(image, "run", "--kubeconfig", "absent")

    # It came as far as the kubeconfig, with everything loaded that it needs.
    assert (done.returncode, "absent" in done.stderr) == (2, True), done.stderr
    assert "internal error" not in done.stderr


def test_up_says_what_is_missing(image: Path) -> None:
    done = _moorage(image, "up", "--for", "1")

    assert done.returncode == 2, done.stderr
    assert "an image for production leaves it out" in done.stderr
