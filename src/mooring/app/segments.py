"""The files of a recording: compressed and written by a thread, so that no decision waits for them.

A recording FILE consists of segments FILE.000001, FILE.000002 and so on. When there are too many or
they have grown too large together, the oldest is removed.
"""

from __future__ import annotations

import os
import re
import threading
import zlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

# A file that was cut off can be read up to the last flush.
_FLUSH_SECONDS = 0.5
# Compressing more of it at a time gains nothing.
_CHUNK_BYTES = 1 << 18
# What may wait for a slow disk, before recording ends rather than the memory.
_MOST_WAITING_BYTES = 1 << 28
# Fast: a recording shrinks to a tenth all the same.
_LEVEL = 3
_GZIP = 31

_NUMBER = re.compile(r"\.(\d{6,})")


@dataclass(frozen=True, slots=True)
class RecordSettings:
    """How much is kept."""

    most_bytes: int = 512 << 20
    most_files: int = 8

    @property
    def segment_bytes(self) -> int:
        return max(1, self.most_bytes // self.most_files)


def segments(path: Path) -> list[Path]:
    """The segments of a recording, the oldest first."""
    found = []
    for each in path.parent.glob(f"{_literal(path.name)}.*"):
        number = _NUMBER.fullmatch(each.name.removeprefix(path.name))
        if number is not None:
            found.append((int(number[1]), each))
    return [each for _, each in sorted(found)]


def _literal(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


class Segments:
    """Writes lines to segment after segment. Only `run` and what it calls is in the thread."""

    def __init__(self, path: Path, settings: RecordSettings) -> None:
        self._path = path
        self._settings = settings
        #: Lines to be written; None begins a new segment.
        self._waiting: deque[Iterable[bytes] | bytes | None] = deque()
        self._given_bytes = 0
        self._taken_bytes = 0
        self._wake = threading.Event()
        self._closing = False
        #: Set by the thread when a new segment is to be begun.
        self.is_full = False
        #: Why nothing is written any more; empty if all is well.
        self.problem = ""
        self._file: BinaryIO | None = None
        self._packed = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._written_bytes = 0
        known = segments(path)
        self._number = int(known[-1].name.rpartition(".")[2]) if known else 0
        # Now, so that a path that cannot be written to is told before anything is scheduled.
        self._begin()
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Has a line written."""
        self._given_bytes += len(line)
        self._waiting.append(line)
        if self._given_bytes - self._taken_bytes > _MOST_WAITING_BYTES and not self.problem:
            self.problem = "the disk is too slow"

    def begin(self, lines: Iterable[bytes]) -> None:
        """Begins a new segment with these lines, which are made in the thread."""
        self.is_full = False
        self._waiting.append(None)
        self._waiting.append(lines)

    def close(self) -> None:
        """Returns when all is written."""
        self._closing = True
        self._wake.set()
        self._thread.join()

    # In the thread

    def _run(self) -> None:
        try:
            while not (self._closing or self.problem):
                self._wake.wait(_FLUSH_SECONDS)
                self._write_waiting()
            self._write_waiting()
            self._end()
        except OSError as error:
            self.problem = f"{self._path}: {error.strerror or error}"
        finally:
            self._waiting.clear()
            if self._file is not None:
                self._file.close()

    def _write_waiting(self) -> None:
        chunk = bytearray()
        while self._waiting and not self.problem:
            given = self._waiting.popleft()
            if given is None:
                self._write(chunk)
                self._end()
                self._begin()
                chunk = bytearray()
                continue
            for line in (given,) if isinstance(given, bytes) else given:
                chunk += line
                if len(chunk) >= _CHUNK_BYTES:
                    self._write(chunk)
                    chunk = bytearray()
            if isinstance(given, bytes):
                self._taken_bytes += len(given)
        if chunk:
            self._write(chunk)
        self._flush()

    def _write(self, chunk: bytearray) -> None:
        self._save(self._packed.compress(chunk))

    def _flush(self) -> None:
        self._save(self._packed.flush(zlib.Z_SYNC_FLUSH))
        if self._written_bytes >= self._settings.segment_bytes:
            self.is_full = True

    def _save(self, packed: bytes) -> None:
        assert self._file is not None, "a segment is open"
        self._file.write(packed)
        self._written_bytes += len(packed)

    def _begin(self) -> None:
        self._number += 1
        self._make_room()
        path = self._path.with_name(f"{self._path.name}.{self._number:06d}")
        # Nobody but its owner is to read it, and a file that is there is somebody else's.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        self._file = os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)
        self._packed = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._written_bytes = 0

    def _end(self) -> None:
        self._save(self._packed.flush(zlib.Z_FINISH))
        if self._file is not None:
            self._file.close()

    def _make_room(self) -> None:
        """Removes the oldest segments, so that there is room for one more."""
        kept = segments(self._path)
        most = self._settings.most_bytes - self._settings.segment_bytes
        while kept and (len(kept) >= self._settings.most_files or _size(kept) > most):
            kept.pop(0).unlink()


def _size(paths: list[Path]) -> int:
    return sum(path.stat().st_size for path in paths)
