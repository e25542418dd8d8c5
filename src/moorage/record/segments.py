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
    """How much of a recording is kept."""

    most_bytes: int = 512 << 20
    most_files: int = 8

    @property
    def segment_bytes(self) -> int:
        return max(1, self.most_bytes // self.most_files)


def find_segments(path: Path) -> list[Path]:
    """Returns the segments of a recording, the oldest first."""
    found = []
    for each in path.parent.glob(f"{_escape(path.name)}.*"):
        number = _NUMBER.fullmatch(each.name.removeprefix(path.name))
        if number is not None:
            found.append((int(number[1]), each))
    return [each for _, each in sorted(found)]


def _escape(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


class SegmentWriter:
    """Writes lines to segments. Only `_run` and the methods that it calls run in the thread."""

    def __init__(self, path: Path, settings: RecordSettings) -> None:
        self._path = path
        self._settings = settings
        #: Lines to be written. None begins a new segment, an event is set when all before it is
        #: in the file.
        self._waiting: deque[Iterable[bytes] | bytes | threading.Event | None] = deque()
        self._given_bytes = 0
        self._taken_bytes = 0
        self._wake = threading.Event()
        self._closing = False
        #: Why nothing is written any more; empty if all is well.
        self.problem = ""
        self._file: BinaryIO | None = None
        self._packed = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._written_bytes = 0
        #: How much of it tells what was known when the segment began.
        self._head_bytes = 0
        known = find_segments(path)
        self._number = int(known[-1].name.rpartition(".")[2]) if known else 0
        # Now, so that a path that cannot be written is reported before anything is scheduled.
        self._begin()
        #: The segment that was begun or asked for last, and the last one that the thread found to
        #: be full: two numbers, so that an old segment is not taken for the new one.
        self._asked = self._number
        self._full = 0
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        self._thread.start()

    @property
    def is_full(self) -> bool:
        """Whether it is time for a new segment."""
        return self._full == self._asked

    def put(self, line: bytes) -> None:
        """Queues a line for writing."""
        self._given_bytes += len(line)
        self._waiting.append(line)
        if self._given_bytes - self._taken_bytes > _MOST_WAITING_BYTES and not self.problem:
            self.problem = "the disk is too slow"

    def begin(self, lines: Iterable[bytes]) -> None:
        """Begins a new segment with these lines, which are made in the thread."""
        self._asked += 1
        self._waiting.append(None)
        self._waiting.append(lines)

    def flush(self) -> None:
        """Returns when everything so far is in the file, or writing has stopped."""
        written = threading.Event()
        self._waiting.append(written)
        self._wake.set()
        while self._thread.is_alive() and not written.wait(_FLUSH_SECONDS):
            pass

    def close(self) -> None:
        """Returns when everything is written."""
        self._closing = True
        self._wake.set()
        self._thread.join()

    # In the thread

    def _run(self) -> None:
        try:
            while not (self._closing or self.problem):
                self._wake.wait(_FLUSH_SECONDS)
                self._wake.clear()
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
        lines: list[bytes] = []
        while self._waiting and not self.problem:
            given = self._waiting.popleft()
            if isinstance(given, bytes):
                lines.append(given)
                self._taken_bytes += len(given)
                continue
            self._write(lines)
            lines = []
            if given is None:
                self._end()
                self._begin()
            elif isinstance(given, threading.Event):
                self._flush()
                given.set()
            else:
                self._write(given)
                self._head_bytes = self._written_bytes
        self._write(lines)
        self._flush()

    def _write(self, lines: Iterable[bytes]) -> None:
        chunk = bytearray()
        for line in lines:
            chunk += line
            if len(chunk) >= _CHUNK_BYTES:
                self._save(self._packed.compress(chunk))
                chunk.clear()
        self._save(self._packed.compress(chunk))

    def _flush(self) -> None:
        self._save(self._packed.flush(zlib.Z_SYNC_FLUSH))
        # Where much is known, a new segment is not worth its beginning until it has grown by that.
        if self._written_bytes >= max(self._settings.segment_bytes, 2 * self._head_bytes):
            self._full = self._number

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
        self._written_bytes = self._head_bytes = 0

    def _end(self) -> None:
        self._save(self._packed.flush(zlib.Z_FINISH))
        if self._file is not None:
            self._file.close()

    def _make_room(self) -> None:
        """Removes the oldest segments, so that there is room for one more."""
        kept = find_segments(self._path)
        most = self._settings.most_bytes - self._settings.segment_bytes
        while kept and (len(kept) >= self._settings.most_files or _sum_sizes(kept) > most):
            kept.pop(0).unlink()


def _sum_sizes(paths: list[Path]) -> int:
    return sum(path.stat().st_size for path in paths)
