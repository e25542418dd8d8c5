"""Reading recordings. They come from others, so everything is checked and nothing is trusted."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import msgspec

from mooring.app.recorded import FORMAT, Header, Line
from mooring.app.segments import segments

from .problems import InputError

_BLOCK_BYTES = 1 << 16
# An object of the API has at most a few megabytes; a step has at most some hundred actions.
_LONGEST_LINE = 1 << 26
_GZIP = 31
_MAGIC = b"\x1f\x8b"

_HEADER = msgspec.json.Decoder(Header)
_LINE = msgspec.json.Decoder(Line)
_CALLS = ("apply", "remove", "told", "step", "end")


class Segment:
    """One file of a recording."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: Whether it ended before its end; known once it is read.
        self.is_cut = False
        self.header = self._read_header()

    def where(self, number: int) -> str:
        """A line, for messages."""
        return f"{self.path}: line {number}"

    def lines(self) -> Iterator[tuple[int, Line]]:
        """All lines but the first with their numbers; those of a file that was cut off too."""
        texts = self._texts()
        next(texts, None)
        for number, text in enumerate(texts, 2):
            yield number, self._line(number, text)

    def _read_header(self) -> Header:
        text = next(self._texts(), b"")
        try:
            header = _HEADER.decode(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InputError(self.path, f"not a recording of Mooring: line 1: {error}") from None
        if header.mooring_recording != FORMAT:
            told = f"has format {header.mooring_recording}, and only format {FORMAT} can be read"
            raise InputError(self.path, f"line 1: mooringRecording: {told}")
        return header

    def _line(self, number: int, text: bytes) -> Line:
        try:
            line = _LINE.decode(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InputError(self.where(number), error) from None
        given = [name for name in _CALLS if getattr(line, name) is not None]
        if len(given) != 1:
            told = " and ".join(given) or "none"
            raise InputError(
                self.where(number), f"must have one of {', '.join(_CALLS)}, has {told}"
            )
        return line

    def _texts(self) -> Iterator[bytes]:
        """The lines, without those that are not there as a whole."""
        rest = b""
        for block in self._blocks():
            *whole, rest = (rest + block).split(b"\n")
            yield from whole
            if len(rest) > _LONGEST_LINE:
                raise InputError(self.path, f"a line is longer than {_LONGEST_LINE} bytes")
        self.is_cut = self.is_cut or bool(rest)

    def _blocks(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                packed = file.read(len(_MAGIC)) == _MAGIC
                file.seek(0)
                yield from self._unpacked(file) if packed else _plain(file)
        except OSError as error:
            raise InputError(self.path, (error.strerror or str(error)).lower()) from error
        except zlib.error as error:
            raise InputError(self.path, f"broken: {error}") from None

    def _unpacked(self, file: BinaryIO) -> Iterator[bytes]:
        unpacker = zlib.decompressobj(_GZIP)
        for block in _plain(file):
            given = block
            while given and not unpacker.eof:
                # A little at a time, so that a small file cannot fill the memory.
                yield unpacker.decompress(given, _BLOCK_BYTES)
                given = unpacker.unconsumed_tail
        yield unpacker.flush()
        self.is_cut = not unpacker.eof


def _plain(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(_BLOCK_BYTES):
        yield block


def open_recording(paths: Iterable[Path]) -> list[Segment]:
    """The segments that paths stand for, in order: files, or what `--record` was given."""
    found = [Segment(each) for path in paths for each in _files(path)]
    runs = list(dict.fromkeys(segment.header.run for segment in found))
    # A scheduler that was started again goes on with the same files. Its last run is what counts.
    chosen = [segment for segment in found if segment.header.run == runs[-1]]
    chosen.sort(key=lambda segment: segment.header.segment)
    for before, after in pairwise(chosen):
        if after.header.segment != before.header.segment + 1:
            told = f"does not follow {before.path}: segment {after.header.segment}"
            raise InputError(after.path, f"{told} after segment {before.header.segment}")
    return chosen


def _files(path: Path) -> list[Path]:
    if path.exists():
        return [path]
    found = segments(path)
    if not found:
        raise InputError(path, "no such file, and no segments of that name")
    return found
