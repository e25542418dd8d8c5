"""How results came about: machine, commit, command. Without it a figure cannot be repeated."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from mooring import __version__

_CPU_INFO = Path("/proc/cpuinfo")
_MEBI = 2**20

# An absolute path in a command: at the beginning of a word, or behind what gives it a name.
_PATH = re.compile(r"(?<![^\s'\"=])/(?:[\w.@+-]+/)+[\w.@+-]+")


def provenance(command: Sequence[str], target: str) -> dict[str, str | int | float]:
    """What somebody needs to know who wants to repeat a run."""
    return {
        "mooring": __version__,
        "commit": _commit(),
        "command": without_folders(shlex.join(command)),
        "target": target,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory_mebibytes():,} MiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        # Others that were at work make figures worse than they are.
        "load": round(os.getloadavg()[0], 2),
    }


def without_folders(text: str) -> str:
    """The text with the paths of files cut down to names: where they are is nobody's business."""
    return _PATH.sub(lambda found: _name(Path(found[0])), text)


def _name(path: Path) -> str:
    # What only looks like a path may be a regular expression.
    return path.name if path.parent.is_dir() else str(path)


def _commit() -> str:
    """The commit of the source tree that this runs from; empty for an installed package."""
    here = Path(__file__).parent
    try:
        told = subprocess.run(
            ("git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"),
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return told.stdout.strip()


def _processor() -> str:
    try:
        lines = _CPU_INFO.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _memory_mebibytes() -> int:
    if sys.platform == "win32":
        return 0
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MEBI
