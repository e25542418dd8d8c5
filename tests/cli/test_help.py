"""The help of every command in a terminal of 80 columns."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer

from moorage.cli import app
from tests.cli.invoking import Moorage


def _find_commands(command: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found = {path: command}
    for name, each in getattr(command, "commands", {}).items():
        found |= _find_commands(each, (*path, name))
    return found


COMMANDS = _find_commands(typer.main.get_command(app))


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "moorage")
def test_nothing_is_cut_off(
    moorage: Moorage, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = COMMANDS[path]

    shown = moorage(*path, "--help")

    words = " ".join(shown.out.split())
    assert (shown.code, shown.err) == (0, "")
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "…" not in words
    # Values have names, not types.
    assert not re.search(r"<(int|float|str|path|text)( range)?>", words)
    for each in command.params:
        assert each.hidden or each.help, f"{each.name} has no text"
        if each.param_type_name == "option":
            assert all(name in words for name in each.opts)
        # Where a line ends at a hyphen, the next one begins a word.
        assert each.help.replace(" ", "") in words.replace(" ", "")
    for name, each in getattr(command, "commands", {}).items():
        first = each.help.split("\n\n")[0].split(". ")[0].rstrip(".")
        assert name in words
        assert "".join(first.split()) in words.replace(" ", "")


def test_short_and_long(moorage: Moorage) -> None:
    assert moorage("explain", "-h").out == moorage("explain", "--help").out
