"""Prints the help of commands as plain text in which no flag, word or sentence is cut off."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

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
