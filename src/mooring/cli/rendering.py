"""Tables and lines for people, on a terminal or in a file."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from .text import plain

# Output that goes to a file or a pipe is not wrapped.
_NO_LIMIT = 10_000


def console_of_text() -> Console:
    """A console that takes texts as they are."""
    return Console(
        width=None if sys.stdout.isatty() else _NO_LIMIT, highlight=False, emoji=False, markup=False
    )


def rendered(parts: Iterable[RenderableType]) -> str:
    """Some parts, one below the other."""
    console = console_of_text()
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return trimmed(captured.get())


def trimmed(text: str) -> str:
    """Without the spaces that pad lines."""
    return re.sub(r" +$", "", text, flags=re.MULTILINE).rstrip()


def line(text: str) -> Text:
    """A line that may hold names from elsewhere."""
    return Text(plain(text))


def table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int | None = None
) -> Table:
    """A table without lines; columns from some number on hold numbers."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for at, header in enumerate(headers):
        is_number = numbers_from is not None and at >= numbers_from
        # As a text, because a string would be searched for markup.
        made.add_column(
            Text(plain(header)), justify="right" if is_number else "left", overflow="fold"
        )
    for row in rows:
        made.add_row(*(Text(plain(cell)) for cell in row))
    return made
