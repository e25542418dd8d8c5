"""The `moorage` command: one module per subcommand, and shared modules beside them.

Nothing is decided here. A subcommand imports what it needs when it runs, so that `--help` and
`--version` need not load NumPy.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from moorage import __version__

from . import (
    bench,
    conform,
    explain,
    fit,
    hollow,
    plugin_package,
    record,
    replay,
    run,
    shadow,
    simulate,
    top,
    up,
    webhook,
)
from .rendering import PlainCommand, PlainGroup, report

app = typer.Typer(
    name="moorage",
    help="A Kubernetes scheduler that decides over NumPy columns.",
    context_settings={"help_option_names": ["-h", "--help"]},
    cls=PlainGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _command in (
    simulate.simulate,
    explain.explain,
    fit.fit,
    top.top,
    run.run,
    up.up,
    hollow.hollow,
    shadow.shadow,
    record.record,
    webhook.webhook,
    conform.conform,
    replay.replay,
):
    app.command(_command.__name__, cls=PlainCommand)(_command)
app.add_typer(bench.app, name="bench")
app.add_typer(plugin_package.app, name="plugin")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"moorage {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an internal error.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line and ends the process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character is no reason to stop.
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except Exception as error:  # noqa: BLE001 - the user gets one line, not a traceback
        debug = "--debug" in sys.argv or bool(os.environ.get("MOORAGE_DEBUG"))
        sys.exit(report(error, debug=debug))
