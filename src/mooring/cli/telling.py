"""The story of the demo, on a terminal or in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from .rendering import console_of_text, line, table, trimmed

_INDENT = 2


class Terminal:
    """Shows the story in colours where there is a terminal, and in plain lines elsewhere."""

    def __init__(self) -> None:
        self._console = console_of_text()
        utf8 = self._console.encoding.lower().startswith("utf")
        self._tick, self._bar = ("✓", "│") if utf8 else ("*", "|")

    def chapter(self, number: int, total: int, title: str, about: str) -> None:
        self._show(Text(f"\n{number}/{total}  {title}", "bold cyan"))
        self._show(Text(about, "dim"))

    def typed(self, command: str) -> None:
        self._hanging(Text("$", "bold green"), Text(command, "bold", no_wrap=True))

    def kept(self, promise: str) -> None:
        self._hanging(Text(self._tick, "green"), line(promise))

    def quoted(self, text: str) -> None:
        self._hanging(Text(self._bar, "dim"), Text(line(text).plain, "italic"))

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self._show(Padding(table(headers, rows), (0, 0, 0, 2 * _INDENT)))

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            return
        # Where the mark of the promise will be, once it is kept.
        spinner = Padding(Spinner("line", line(what)), (0, 0, 0, _INDENT))
        with Live(spinner, console=self._console, transient=True):
            yield

    def _hanging(self, mark: Text, text: Text) -> None:
        """A mark, and a text that wraps beside it."""
        beside = Table.grid(padding=(0, 1, 0, 0))
        beside.add_column()
        beside.add_column(overflow="fold")
        beside.add_row(mark, text)
        self._show(Padding(beside, (0, 0, 0, _INDENT)))

    def _show(self, part: RenderableType) -> None:
        with self._console.capture() as captured:
            self._console.print(part)
        print(trimmed(captured.get()), flush=True)
