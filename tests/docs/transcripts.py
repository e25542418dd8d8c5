"""What a page shows as typed into a terminal: commands behind `$ `, and what they printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROMPT = "$ "
_CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)

#: Runs a command, and gives what it printed.
Terminal = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a page, and what the page shows of it."""

    command: str
    shown: str

    def text(self) -> str:
        return f"{PROMPT}{self.command}\n{self.shown}"


def steps(page: Path) -> list[Step]:
    return [step for block in _CONSOLE.findall(page.read_text()) for step in _steps(block)]


def rewrite(page: Path, terminal: Terminal) -> None:
    """Types every command, in order, and writes down what it prints."""

    def typed(block: re.Match[str]) -> str:
        commands = [step.command for step in _steps(block[0])]
        return "".join(Step(command, terminal(command)).text() for command in commands)

    page.write_text(_CONSOLE.sub(typed, page.read_text()))


def _steps(block: str) -> list[Step]:
    assert block.startswith(PROMPT), block
    typed = re.split(rf"^{re.escape(PROMPT)}", block, flags=re.MULTILINE)[1:]
    return [Step(command, shown) for command, _, shown in (each.partition("\n") for each in typed)]
