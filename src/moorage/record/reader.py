"""Reads recordings. Others made them, so everything is checked and nothing is trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

from moorage.documents.errors import InputError
from moorage.documents.files import LineReader, peek

from .format import FORMAT, Header, RecordLine
from .segments import find_segments

_HEADER = msgspec.json.Decoder(Header)
_LINE = msgspec.json.Decoder(RecordLine)
_BEGINNING = b'{"moorageRecording"'
_CALLS = ("apply", "remove", "told", "step", "judged", "end")


class Segment:
    """One file of a recording."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines = LineReader(path)
        self.header = self._read_header()

    @property
    def is_cut(self) -> bool:
        """Whether the file was cut off; known once it is read."""
        return self._lines.is_cut

    def where(self, number: int) -> str:
        """Describes the place of a line, for messages."""
        return f"{self.path}: line {number}"

    def lines(self) -> Iterator[tuple[int, RecordLine]]:
        """Yields all lines but the first with their numbers, also if the file was cut off."""
        texts = iter(self._lines)
        next(texts, None)
        for number, text in enumerate(texts, 2):
            yield number, self._read_line(number, text)

    def _read_header(self) -> Header:
        text = next(iter(self._lines), b"")
        try:
            header = _HEADER.decode(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InputError(self.path, f"not a recording of Moorage: line 1: {error}") from None
        if header.moorage_recording != FORMAT:
            problem = f"has format {header.moorage_recording}, and only format {FORMAT} can be read"
            raise InputError(self.path, f"line 1: moorageRecording: {problem}")
        return header

    def _read_line(self, number: int, text: bytes) -> RecordLine:
        try:
            line = _LINE.decode(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InputError(self.where(number), error) from None
        given = [name for name in _CALLS if getattr(line, name) is not None]
        if len(given) != 1:
            problem = " and ".join(given) or "none"
            raise InputError(
                self.where(number), f"must have one of {', '.join(_CALLS)}, has {problem}"
            )
        return line


def is_recording(path: Path) -> bool:
    """Whether a path is a recording: a segment, or the file that `--record` was given."""
    if path.exists():
        return peek(path).startswith(_BEGINNING)
    return bool(find_segments(path))


def open_recording(paths: Iterable[Path]) -> list[Segment]:
    """Returns the segments of paths, in order. A path may be what `--record` was given."""
    found = [Segment(each) for path in paths for each in _find_files(path)]
    runs = list(dict.fromkeys(segment.header.run for segment in found))
    # A scheduler that was started again goes on with the same files. Its last run is what counts.
    chosen = [segment for segment in found if segment.header.run == runs[-1]]
    chosen.sort(key=lambda segment: segment.header.segment)
    for before, after in pairwise(chosen):
        if after.header.segment != before.header.segment + 1:
            problem = f"does not follow {before.path}: segment {after.header.segment}"
            raise InputError(after.path, f"{problem} after segment {before.header.segment}")
    return chosen


def _find_files(path: Path) -> list[Path]:
    if path.exists():
        return [path]
    found = find_segments(path)
    if not found:
        raise InputError(path, "no such file, and no segments of that name")
    return found
