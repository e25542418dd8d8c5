"""Runs the install steps of the Dockerfile in an empty folder, where there is no container engine.

    python -m tools.image_root        # needs a package index; prints what each step says

The folder stands for the root of the build stage: paths of the Dockerfile that begin with /opt or
/src are taken within it. Then the scheduler that was installed is started, with nothing else on its
path, as far as the kubeconfig that it lacks.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_MISSING = "no-such-kubeconfig"


def read_steps(dockerfile: str) -> Iterator[tuple[str, str]]:
    """The instructions of the first stage, in order, with their lines joined."""
    text = re.sub(r"\\\n\s*", "", dockerfile)
    stage = 0
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        stage += word == "FROM"
        if stage == 1 and word in ("COPY", "RUN"):
            yield word, rest


def run_steps(root: Path) -> None:
    """Copies and runs what the build stage copies and runs; raises CalledProcessError."""
    source = root / "src"
    source.mkdir()
    environment = {**os.environ, "HOME": str(root), "PYTHONPATH": ""}
    for word, rest in read_steps((_ROOT / "Dockerfile").read_text()):
        print(f"{word} {rest}", flush=True)
        if word == "COPY":
            *names, target = rest.split()
            for name in names:
                copy(_ROOT / name, source / target if target != "./" else source / name)
        else:
            command = rest.replace("/opt/", f"{root}/opt/").replace("python ", f"{sys.executable} ")
            command = command.replace(f"bin/{sys.executable} ", "bin/python ")
            subprocess.run(command, shell=True, check=True, cwd=source, env=environment)


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def try_scheduler(root: Path) -> None:
    """Starts the installed scheduler, which must come as far as its kubeconfig."""
    place = root / "opt" / "moorage" / "bin"
    command = [str(place / "moorage"), "run", "--kubeconfig", _MISSING]
    environment = {"PATH": str(place), "HOME": str(root)}
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    print(done.stderr, end="")
    if done.returncode != 2 or _MISSING not in done.stderr:
        raise SystemExit(f"moorage run ended with {done.returncode}")
    listed = [str(place / "pip"), "list", "--format=freeze"]
    packages = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    print(f"{len(packages)} packages: {' '.join(packages)}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        run_steps(root)
        try_scheduler(root)


if __name__ == "__main__":
    main()
