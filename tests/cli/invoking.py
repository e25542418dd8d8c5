"""Calling the command line in this process."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest

from moorage.cli import main


@dataclass(frozen=True)
class Result:
    code: int | str | None
    out: str
    err: str


class Moorage:
    """`moorage` as a function."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Result:
        self._monkeypatch.setattr("sys.argv", ["moorage", *arguments])
        # Where it is `pytest`, as in `python -m pytest`, that would be the name of the program.
        self._monkeypatch.setattr(sys.modules["__main__"], "__package__", "")
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capsys.readouterr()
        return Result(ended.value.code, out, err)
