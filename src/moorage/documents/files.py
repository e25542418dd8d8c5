"""Finds the files of a path and reads them."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .errors import InputError

STDIN = "-"

_PLAIN_SUFFIXES = (".yaml", ".yml", ".json")
_SUFFIXES = (*_PLAIN_SUFFIXES, *(f"{each}.gz" for each in _PLAIN_SUFFIXES))

# Far above any real cluster, and below what would exhaust the memory of a small machine.
_LARGEST = 512 * 2**20

# An object of the API has at most a few megabytes; a step has at most some hundred actions.
LONGEST_LINE = 1 << 26
# Nobody writes that many; a small compressed file may hold very many.
_MOST_BLANK_LINES = 10_000
_BLOCK_BYTES = 1 << 16
_GZIP = 31
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a file."""

    name: str
    text: str

    @property
    def is_json(self) -> bool:
        """Whether to read it as JSON: decided by its name, else by its beginning."""
        if self.name.removesuffix(".gz").endswith(".json"):
            return True
        start = self.text[:1024].lstrip()
        return start[:1] == "{" and start[1:].lstrip()[:1] in ('"', "}")


def sources(paths: Iterable[str]) -> Iterator[Source]:
    """Reads files, the manifests in directories, and standard input."""
    for path in paths:
        if path == STDIN:
            yield _read_source(sys.stdin.buffer, "standard input")
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
        raise InputError(path, f"no {', '.join(_PLAIN_SUFFIXES)} file in this directory")
    return sorted(found)


def _is_hidden(folders: list[str], name: str) -> bool:
    # What is taken from `folders` is not walked into: version control and editors hide there.
    folders[:] = [folder for folder in folders if not folder.startswith(".")]
    return name.startswith(".")


def _open(path: Path) -> Source:
    try:
        with path.open("rb") as file:
            return _read_source(file, str(path))
    except (OSError, ValueError) as error:
        _refuse(error, path)
        raise


def _read_source(file: BinaryIO, name: str) -> Source:
    content = file.read(_LARGEST + 1)
    if content.startswith(_GZIP_MAGIC):
        content = _unpack(content, name)
    if len(content) > _LARGEST:
        raise InputError(name, f"larger than {_LARGEST // 2**20} MiB")
    try:
        return Source(name, content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        byte = content[error.start]
        raise InputError(name, f"not UTF-8 text (byte 0x{byte:02x} at {error.start})") from None


def _unpack(packed: bytes, name: str) -> bytes:
    """Unpacks gzip, up to one byte more than the largest file may have."""
    unpacker = zlib.decompressobj(_GZIP)
    try:
        return unpacker.decompress(packed, _LARGEST + 1)
    except zlib.error as error:
        raise InputError(name, f"broken gzip: {error}") from None


def _refuse(error: OSError | ValueError, path: Path | None = None) -> None:
    """Makes an error that says why a file cannot be read; a name with NUL raises ValueError."""
    if isinstance(error, OSError):
        reason = (error.strerror or str(error)).lower()
        raise InputError(path or error.filename, reason) from error
    raise InputError(path, error) from error


def peek(path: Path, count: int = 1024) -> bytes:
    """Returns the beginning of a file, gzip or plain; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(count)
        if start.startswith(_GZIP_MAGIC):
            start = zlib.decompressobj(_GZIP).decompress(start, count)
    except (OSError, ValueError, zlib.error):
        return b""
    return start


class LineReader:
    """The lines of a file, gzip or plain, without their ends. Reading needs little memory.

    Iterating raises InputError if the file is broken or a line is too long. A last line without an
    end was cut off, and is left out unless `keep_last`.
    """

    def __init__(self, path: Path, *, keep_last: bool = False) -> None:
        self._path = path
        self._keep_last = keep_last
        #: Whether compressed data or a line that is left out was cut off; known once it is read.
        self.is_cut = False

    def __iter__(self) -> Iterator[bytes]:
        blank = 0
        for line in self._whole_lines():
            blank = 0 if line else blank + 1
            if blank > _MOST_BLANK_LINES:
                raise InputError(self._path, f"more than {_MOST_BLANK_LINES:,} blank lines")
            yield line

    def _whole_lines(self) -> Iterator[bytes]:
        # Parts are joined once, so that a line of many blocks does not cost its length squared.
        begun: list[bytes] = []
        length = 0
        for block in self._blocks():
            first, *others = block.split(b"\n")
            begun.append(first)
            length += len(first)
            for other in others:
                yield b"".join(begun)
                begun, length = [other], len(other)
            if length > LONGEST_LINE:
                raise InputError(self._path, f"a line is longer than {LONGEST_LINE} bytes")
        if length and self._keep_last:
            yield b"".join(begun)
        elif length:
            self.is_cut = True

    def _blocks(self) -> Iterator[bytes]:
        try:
            with self._path.open("rb") as file:
                packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
                file.seek(0)
                yield from self._unpack(file) if packed else _plain_blocks(file)
        except OSError as error:
            _refuse(error, self._path)
        except zlib.error as error:
            raise InputError(self._path, f"broken: {error}") from None

    def _unpack(self, file: BinaryIO) -> Iterator[bytes]:
        unpacker = None
        for block in _plain_blocks(file):
            given = block
            while given:
                unpacker = unpacker or zlib.decompressobj(_GZIP)
                # A little at a time, so that a small file cannot fill the memory.
                yield unpacker.decompress(given, _BLOCK_BYTES)
                given = unpacker.unconsumed_tail
                if unpacker.eof:
                    # What was compressed one by one may follow, or padding.
                    given, unpacker = unpacker.unused_data.lstrip(b"\0"), None
        if unpacker is not None:
            yield unpacker.flush()
            self.is_cut = not unpacker.eof


def _plain_blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(_BLOCK_BYTES):
        yield block
