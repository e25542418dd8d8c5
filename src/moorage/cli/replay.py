"""`moorage replay`: repeat the decisions of a recording and compare."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .options import AnswerFormat, OutputOption, PluginsOption
from .rendering import note, plain, print_data

# Exit code when a decision differs from the recorded one.
_DIFFERENT = 1


def replay(  # noqa: PLR0913 - one for each flag
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="The file given to `moorage run --record` or `moorage record`, or some segments.",
            show_default=False,
        ),
    ],
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Decide with this KubeSchedulerConfiguration and show which pods go elsewhere.",
        ),
    ] = None,
    emulation_version: Annotated[
        str,
        typer.Option(
            "--emulation-version",
            "--emulated-version",
            metavar="VERSION",
            help="Decide as kube-scheduler of this version does, 1.36 or 1.37, and show which pods "
            "go elsewhere. Default: as recorded.",
            show_default=False,
        ),
    ] = "",
    feature_gates: Annotated[
        str,
        typer.Option(
            metavar="A=true,B=false",
            help="Switch these feature gates on or off, and show which pods go elsewhere.",
        ),
    ] = "",
    plugins: PluginsOption = None,
    until: Annotated[
        str,
        typer.Option(
            metavar="TIME|COUNT",
            help="Stop after this time (90s) or this number of decisions (500), and show the pods "
            "that wait then and why.",
        ),
    ] = "",
    pod: Annotated[
        str, typer.Option(metavar="NAMESPACE/NAME", help="Show all that happened to this pod.")
    ] = "",
    output: OutputOption = AnswerFormat.TABLE,
) -> None:
    """Repeat the decisions of a recording and compare them with the recorded ones.

    Exit code: 0 if all are the same, 1 if one differs, 2 if the recording cannot be used.
    """
    # Here, so that the other commands start without NumPy.
    from moorage.config.gates import changes
    from moorage.config.kubernetes_versions import read_version
    from moorage.engine.registry import registry
    from moorage.record.report import describe, to_builtins
    from moorage.record.whole_replay import OtherSettings, parse_limit, replay

    from .inputs import load_plugins

    known = registry(load_plugins(plugins or ()))
    version = read_version(emulation_version) if emulation_version else None
    done = replay(
        files,
        other=OtherSettings(config, version, changes(feature_gates)),
        plugins=known,
        limit=parse_limit(until),
        pod=pod,
    )
    for text in done.notes:
        note(text)
    if not print_data(to_builtins(done), output):
        for line in describe(done):
            print(plain(line))
    sys.stdout.flush()
    if done.counts.difference_count:
        raise typer.Exit(_DIFFERENT)
