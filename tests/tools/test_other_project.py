"""The wheel works beside the other project, which has the name that this one had before."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OTHER = "mooring"
# The other project needs it.
LOWEST = (3, 12)


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _find_python() -> str:
    """Returns a Python that the other project supports; skips the test without one."""
    names = (f"python3.{minor}" for minor in range(LOWEST[1], 20))
    for found in (sys.executable, *filter(None, map(shutil.which, names))):
        asked = _run(found, "-c", f"import sys, ensurepip; sys.exit(sys.version_info < {LOWEST})")
        if asked.returncode == 0:
            return found
    pytest.skip("needs Python 3.12 or later on the PATH")


def test_both_work_in_one_environment(tmp_path: Path) -> None:
    python = _find_python()
    fetched = _run(python, "-m", "pip", "download", "--no-deps", "--dest", tmp_path, OTHER)
    if fetched.returncode:
        pytest.skip("needs a package registry (pip download)")
    wheel = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation")
    built = _run(*wheel, "--wheel-dir", tmp_path, ROOT)
    assert built.returncode == 0, built.stderr
    bin_folder = tmp_path / "environment" / "bin"
    assert _run(python, "-m", "venv", tmp_path / "environment").returncode == 0

    installed = _run(bin_folder / "pip", "install", *sorted(tmp_path.glob("*.whl")))

    assert installed.returncode == 0, installed.stderr
    assert _run(bin_folder / "pip", "check").stdout == "No broken requirements found.\n"
    for name in ("moorage", OTHER):
        answered = _run(bin_folder / name, "--version")
        assert (answered.returncode, answered.stdout.split()[0]) == (0, name)
        assert _run(bin_folder / "python", "-c", f"import {name}").returncode == 0
    explained = _run(bin_folder / "moorage", "explain", ROOT / "examples" / "demo")
    assert explained.stdout.startswith("4 pods fit nowhere; 16 pods fit now\n")
