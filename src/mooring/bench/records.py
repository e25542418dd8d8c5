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

# The folders of an absolute path, wherever in an argument it begins.
_FOLDERS = re.compile(r"(?<![\w./}-])/(?:[\w.@+-]+/)*(?=[\w.])")


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
    """The text with absolute paths cut down to names: where files are is nobody else's business."""
    return _FOLDERS.sub("", text)


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
