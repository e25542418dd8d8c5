"""`mooring replay`: make the decisions of a recording again, and tell every difference."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import OUTCOME, PluginsOption
from .text import plain

if TYPE_CHECKING:
    from mooring.simulate.replay_run import Replayed

# Exit code when something was decided otherwise than recorded.
_DIFFERENT = 1


class Output(StrEnum):
    """How the outcome is written."""

    TEXT = "text"
    JSON = "json"


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="What `mooring run --record` was given, or segments of it.",
            show_default=False,
        ),
    ],
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Another KubeSchedulerConfiguration: shows which pods go elsewhere with it.",
        ),
    ] = None,
    plugins: PluginsOption = None,
    until: Annotated[
        str,
        typer.Option(
            metavar="TIME|COUNT",
            help="Stop there and show who waits and why: 90s after the beginning, or after so "
            "many decisions.",
        ),
    ] = "",
    pod: Annotated[
        str, typer.Option(metavar="NAMESPACE/NAME", help="Tell the story of a pod.")
    ] = "",
    output: Annotated[Output, OUTCOME] = Output.TEXT,
) -> None:
    """Make the decisions of a recording again and compare them with those that were made.

    Exits with 0 when all are the same, 1 when one differs, 2 when the recording cannot be used.
    """
    # Here, so that the other commands start without NumPy.
    from mooring.engine.registry import registry
    from mooring.simulate.replay_report import structure, text
    from mooring.simulate.replay_run import replay, stop_at

    from .plugin_files import plugins_of

    known = registry(plugins_of(plugins or ()))
    done = replay(files, config=config, plugins=known, stop=stop_at(until), pod=pod)
    for note in done.notes:
        print(plain(f"note: {note}"), file=sys.stderr)
    if output is Output.JSON:
        print(json.dumps(structure(done), indent=2))
    else:
        for line in text(done):
            print(plain(line))
    sys.stdout.flush()
    _end(done)


def _end(done: Replayed) -> None:
    if done.outcome.difference_count:
        raise typer.Exit(_DIFFERENT)
