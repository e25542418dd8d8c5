"""What commands print: text, tables, progress, errors and help, safely for names from a cluster.

Rich is imported when something is drawn, because most commands start without it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import traceback
from collections.abc import Iterable, Sequence
from threading import Timer
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from typer.core import TyperCommand, TyperGroup

from moorage.documents.errors import ConfigError, MoorageError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text

# Output that goes to a file or a pipe is not wrapped.
_NO_LIMIT = 10_000

# A command that ends sooner needs no progress bar and does not pay for loading one.
_PATIENCE_SECONDS = 1.0

_MOST_NAMES = 4


def plain(text: str) -> str:
    """Escapes control characters, so that a name from the cluster cannot move the cursor."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def note(text: str) -> None:
    """Prints a note on standard error; no name is broken at the end of a line."""
    print(_wrap(plain(f"note: {text}")), file=sys.stderr)


def _wrap(text: str) -> str:
    if not sys.stderr.isatty():
        return text
    import textwrap

    return textwrap.fill(
        text,
        os.get_terminal_size(sys.stderr.fileno()).columns,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def print_data(value: object, output: str) -> bool:
    """Prints a value if the format is json or yaml; returns whether it is."""
    if output not in ("json", "yaml"):
        return False
    import msgspec

    if output == "json":
        print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    else:
        print(write_yaml(msgspec.to_builtins(value)))
    return True


def write_yaml(value: object) -> str:
    """Writes a value of dictionaries, lists and scalars as YAML."""
    import yaml

    # PyYAML may be built without libyaml, which is ten times as fast.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    # All but ASCII is written as escapes, so that no name reaches the terminal raw.
    return yaml.dump(value, Dumper=dumper, sort_keys=False, width=100).rstrip()


def shorten(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """Joins names; of a long list it gives the first few and the number of the others."""
    text = ", ".join(names[:most])
    left = len(names) - most
    return f"{text} and {left:,} more" if left > 0 else text


def count(number: int, what: str) -> str:
    """Says how many there are of something."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def find(number: int) -> str:
    """Returns the verb of pods that find a node, or none."""
    return "finds" if number == 1 else "find"


def plain_console() -> Console:
    """Makes a console that prints text as it is, without markup, highlighting or emoji."""
    from rich.console import Console

    return Console(
        width=None if sys.stdout.isatty() else _NO_LIMIT, highlight=False, emoji=False, markup=False
    )


def render(parts: Iterable[RenderableType]) -> str:
    """Draws parts one below the other."""
    console = plain_console()
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return trim(captured.get())


def trim(text: str) -> str:
    """Removes the spaces with which Rich pads lines."""
    return re.sub(r" +$", "", text, flags=re.MULTILINE).rstrip()


def terminal_width() -> int:
    """Returns how many columns there are; output that goes elsewhere has no limit."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _NO_LIMIT


def line(text: str, style: str = "") -> Text:
    """Makes a line of text that may contain names from the cluster."""
    from rich.text import Text

    return Text(plain(text), style)


def indent(part: RenderableType) -> RenderableType:
    """Moves a part to the right, with all lines into which it is wrapped."""
    from rich.padding import Padding

    return Padding(part, (0, 0, 0, 4))


def paragraph(first: str, *others: str) -> Text:
    """Makes a text of several lines; all but the first are indented."""
    from rich.text import Text

    text = Text(plain(first))
    for each in filter(None, others):
        text.append(f"\n{plain(each)}", "dim")
    return text


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    numbers_from: int | None = None,
    *,
    gap: int = 3,
    whole: int = 0,
) -> Table:
    """Makes a table without borders; columns from index `numbers_from` on are right-aligned.

    A column without a header is always left-aligned. The first `whole` columns are never wrapped.
    """
    from rich.table import Table

    drawn = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for at, header in enumerate(headers):
        is_number = numbers_from is not None and at >= numbers_from and header != ""
        # As a text, because a string would be searched for markup.
        justify: Literal["left", "right"] = "right" if is_number else "left"
        drawn.add_column(line(header), justify=justify, overflow="fold", no_wrap=at < whole)
    for row in rows:
        drawn.add_row(*(line(cell) if isinstance(cell, str) else cell for cell in row))
    return drawn


class ProgressBar:
    """Shows progress on standard error, from a thread of its own.

    The bar appears on terminals only, and only if the command takes longer than a second.
    """

    def __init__(self) -> None:
        self._timer = Timer(_PATIENCE_SECONDS, self._show)
        self._timer.daemon = True
        self._bar: Progress | None = None
        self._title, self._total, self._done = "reading", 0, 0

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._timer.is_alive():
            self._timer.join()
        if self._bar is not None:
            self._bar.stop()

    def stage(self, title: str, total: int = 0) -> None:
        """Starts the next stage; a total of 0 means that the total is unknown."""
        self._title, self._total, self._done = title, total, 0
        if self._bar is not None:
            self._bar.reset(
                self._bar.task_ids[0], description=title, total=total or None, completed=0
            )

    def update(self, done: int) -> None:
        """Sets how much of the stage is done."""
        self._done = done
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        bar = Progress(console=Console(stderr=True), transient=True)
        bar.add_task(self._title, total=self._total or None, completed=self._done)
        bar.start()
        self._bar = bar


BAD_INPUT = 2

# EX_SOFTWARE of sysexits.h.
INTERNAL = 70


def report(error: Exception, *, debug: bool) -> int:
    """Prints an error on standard error and returns the exit code."""
    lines = _input_errors(error)
    if lines:
        for text in lines:
            print(plain(text), file=sys.stderr)
        return BAD_INPUT
    if debug:
        traceback.print_exception(error)
    hint = "" if debug else " (run `moorage --debug ...` or set MOORAGE_DEBUG=1 for the traceback)"
    text = plain(f"{type(error).__name__}: {error}")
    print(f"moorage: internal error: {text}{hint}", file=sys.stderr)
    return INTERNAL


def _input_errors(error: Exception) -> list[str]:
    """Returns what is wrong with the user's input; nothing if the error is Moorage's own."""
    if isinstance(error, ConfigError):
        return [f"{error.source}: {problem}" for problem in error.problems]
    if isinstance(error, MoorageError):
        return [str(error)]
    if isinstance(error, ModuleNotFoundError) and _is_left_out(error.name or ""):
        return [f"this install has no {error.name}: an image for production leaves it out"]
    if isinstance(error, OSError) and error.filename is not None:
        return [f"{error.filename}: {(error.strerror or str(error)).lower()}"]
    return []


def _is_left_out(module: str) -> bool:
    return module.startswith(("moorage.embedded", "moorage.demo"))


_ARGUMENTS, _OPTIONS = "Arguments", "Options"


class PlainCommand(TyperCommand):
    """A command whose help shows options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes arguments and options, by their groups."""
        _write_parameters(self, ctx, formatter)


class PlainGroup(TyperGroup):
    """A group of commands whose help describes each command in a whole sentence."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes options and commands."""
        _write_parameters(self, ctx, formatter)
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    # As long as it takes: the terminal's width is for wrapping.
                    (name, command.get_short_help_str(10_000))
                    for name, command in commands.items()
                    if command is not None and not command.hidden
                ]
            )


def _write_parameters(command: TyperCommand | TyperGroup, ctx: Any, formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {_ARGUMENTS: [], _OPTIONS: []}
    for each in command.get_params(ctx):
        record = each.get_help_record(ctx)
        if record is None:
            continue
        name, text = record
        if each.param_type_name == "argument":
            # The type says nothing that the name does not.
            sections[_ARGUMENTS].append((name.partition(" ")[0], text))
        else:
            group = getattr(each, "rich_help_panel", None) or _OPTIONS
            sections.setdefault(group, []).append((name, text))
    for title, records in sections.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)
