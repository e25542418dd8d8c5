"""`python -m tools.lock`: write requirements.lock, what the image installs, with hashes.

The versions are those of constraints.txt. Hashes are those of all files that the package index has
of a version, so that the lock serves every platform.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import requires
from pathlib import Path
from urllib.parse import unquote
from urllib.request import urlopen

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
HEADER = "# What `moorage run` installs, for `pip install --require-hashes`. Refresh: make lock\n"

# As pip has it; another index is given as pip takes it.
_INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")
_SECONDS = 60
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# A link to a file, as every index has it: PEP 503.
_LINK = re.compile(r"""/([^/"'#]+)#sha256=([0-9a-f]{64})""")

#: The SHA-256 of files, by name.
Files = Mapping[str, str]


def main() -> int:
    pins = read_pins((ROOT / "constraints.txt").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = find_closure(project["dependencies"], pins)
    found = {name: find_hashes(name, pins[name], _fetch(name)) for name in names}
    LOCK.write_text(write_lock(pins, found))
    return 0


def read_pins(text: str) -> dict[str, str]:
    """The versions in constraints, by name."""
    lines = (line.partition("==") for line in text.splitlines() if "==" in line)
    return {canonicalize_name(name): version for name, _, version in lines}


def find_closure(wanted: Iterable[str], pins: Mapping[str, str]) -> list[str]:
    """The packages of requirements, and what these need, without extras."""
    found: set[str] = set()
    left = list(wanted)
    while left:
        requirement = Requirement(left.pop())
        name = canonicalize_name(requirement.name)
        if name in found or not _is_needed(requirement):
            continue
        if name not in pins:
            raise SystemExit(f"constraints.txt: has no {name}, which is needed: make lock")
        found.add(name)
        left += requires(name) or ()
    return sorted(found)


def _is_needed(requirement: Requirement) -> bool:
    """Whether some version of Python that is supported needs it, on Linux."""
    base = {"extra": "", "sys_platform": "linux"}
    return requirement.marker is None or any(
        requirement.marker.evaluate(
            {**base, "python_version": version, "python_full_version": f"{version}.0"}
        )
        for version in _PYTHONS
    )


def find_hashes(name: str, version: str, files: Files) -> list[str]:
    """The SHA-256 of each file of a version."""
    hashes = {digest for file, digest in files.items() if _version_of(file) == version}
    if not hashes:
        raise SystemExit(f"{name}: the index has no files of {version}")
    return sorted(hashes)


def write_lock(pins: Mapping[str, str], hashes: Mapping[str, Iterable[str]]) -> str:
    entries = []
    for name, found in sorted(hashes.items()):
        lines = [f"{name}=={pins[name]}", *(f"    --hash=sha256:{each}" for each in found)]
        entries.append(" \\\n".join(lines) + "\n")
    return HEADER + "".join(entries)


def _version_of(filename: str) -> str:
    try:
        if filename.endswith(".whl"):
            return str(parse_wheel_filename(filename)[1])
        return str(parse_sdist_filename(filename)[1])
    except ValueError:
        return ""


def read_page(text: str) -> Files:
    """The files of a page of an index."""
    return {unquote(name): digest for name, digest in _LINK.findall(text)}


def _fetch(name: str) -> Files:
    with urlopen(f"{_INDEX.rstrip('/')}/{name}/", timeout=_SECONDS) as answer:
        return read_page(answer.read().decode())


if __name__ == "__main__":
    sys.exit(main())
