"""Lines of files that may be compressed, long, broken or cut off."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from moorage.documents import files
from moorage.documents.errors import InputError
from moorage.documents.files import LineReader
from moorage.simulate import verdicts


def read(path: Path, content: bytes, *, keep_last: bool = False) -> tuple[list[bytes], bool]:
    path.write_bytes(content)
    lines = LineReader(path, keep_last=keep_last)
    return list(lines), lines.is_cut


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_whole_lines(tmp_path: Path, pack: type[bytes]) -> None:
    assert read(tmp_path / "a", pack(b"one\n\ntwo\n")) == ([b"one", b"", b"two"], False)
    assert read(tmp_path / "a", pack(b"one\ntwo")) == ([b"one"], True)
    assert read(tmp_path / "a", pack(b"one\ntwo"), keep_last=True) == ([b"one", b"two"], False)


def test_members_that_follow_each_other_and_padding(tmp_path: Path) -> None:
    packed = gzip.compress(b"one\n") + gzip.compress(b"two\n") + bytes(512)

    assert read(tmp_path / "a", packed) == ([b"one", b"two"], False)


def test_compressed_data_that_was_cut_off(tmp_path: Path) -> None:
    lines, is_cut = read(tmp_path / "a", gzip.compress(b"one\n" * 1000)[:-8])

    assert lines == [b"one"] * 1000
    assert is_cut


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b" " * (1 << 26), "a line is longer than 1048576 bytes", id="one long line"),
        pytest.param(b"\n" * (1 << 26), "more than 10,000 blank lines", id="blank lines"),
    ],
)
def test_a_small_file_costs_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, problem: str
) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(content))

    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=problem):
            list(verdicts.read_scenarios(path))
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_a_recorded_verdict_nested_without_end(tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_bytes(b'{"scenario":' + b"[" * 100_000 + b"\n")

    with pytest.raises(InputError, match=r"deep\.jsonl: line 1: "):
        list(verdicts.read_scenarios(path))
