"""The files that a path means, and what is in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .problems import InputError

STDIN = "-"

_SUFFIXES = (".yaml", ".yml", ".json")

# Far above any real cluster, and below what would exhaust the memory of a small machine.
_LARGEST = 512 * 2**20


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a file."""

    name: str
    text: str

    @property
    def is_json(self) -> bool:
        """Whether to read it as JSON: by its name, else by how it begins."""
        if self.name.endswith(".json"):
            return True
        start = self.text[:1024].lstrip()
        return start[:1] == "{" and start[1:].lstrip()[:1] in ('"', "}")


def sources(paths: Iterable[str]) -> Iterator[Source]:
    """Reads files, the manifests in directories, and standard input."""
    for path in paths:
        if path == STDIN:
            yield _read(sys.stdin.buffer, "standard input")
        else:
            for file in _files(Path(path)):
                yield _open(file)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = [
        Path(folder, name)
        for folder, folders, names in os.walk(path, onerror=_refuse)
        for name in names
        if name.endswith(_SUFFIXES) and not _is_hidden(folders, name)
    ]
    if not found:
        raise InputError(path, f"no {', '.join(_SUFFIXES)} file in this directory")
    return sorted(found)


def _is_hidden(folders: list[str], name: str) -> bool:
    # What is taken from `folders` is not walked into: version control and editors hide there.
    folders[:] = [folder for folder in folders if not folder.startswith(".")]
    return name.startswith(".")


def _open(path: Path) -> Source:
    try:
        with path.open("rb") as file:
            return _read(file, str(path))
    except (OSError, ValueError) as error:
        _refuse(error, path)
        raise


def _read(file: BinaryIO, name: str) -> Source:
    content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise InputError(name, f"larger than {_LARGEST // 2**20} MiB")
    try:
        return Source(name, content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        byte = content[error.start]
        raise InputError(name, f"not UTF-8 text (byte 0x{byte:02x} at {error.start})") from None


def _refuse(error: OSError | ValueError, path: Path | None = None) -> None:
    """Says in words why a file cannot be read; a name with a NUL in it is a ValueError."""
    if isinstance(error, OSError):
        reason = (error.strerror or str(error)).lower()
        raise InputError(path or error.filename, reason) from error
    raise InputError(path, error) from error
