"""Flags of `mooring run` alone: leader election, rates, recording."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import CONNECTION, LOGS, SERVING

_LEADER, _RECORD = "Leader election", "Recording"


class Switch(StrEnum):
    """As Kubernetes' components take it: --flag=true."""

    ON = "true"
    OFF = "false"


KubeApiQpsOption = Annotated[
    float,
    typer.Option(
        metavar="RATE",
        min=0.0,
        help="Requests a second at most; 0 asks as fast as the API server answers.",
        rich_help_panel=CONNECTION,
    ),
]
KubeApiBurstOption = Annotated[
    int,
    typer.Option(
        metavar="COUNT",
        min=0,
        help="Requests at once, where there is a rate.",
        rich_help_panel=CONNECTION,
    ),
]
LeaderElectOption = Annotated[
    Switch | None,
    typer.Option(help="Whether to wait for leadership before scheduling.", rich_help_panel=_LEADER),
]
LeaseDurationOption = Annotated[
    str | None, typer.Option(metavar="DURATION", rich_help_panel=_LEADER)
]
LeaseNameOption = Annotated[str | None, typer.Option(metavar="NAME", rich_help_panel=_LEADER)]
LeaseNamespaceOption = Annotated[
    str | None, typer.Option(metavar="NAMESPACE", rich_help_panel=_LEADER)
]
AlwaysAllowPathsOption = Annotated[
    str,
    typer.Option(
        metavar="PATH,...",
        help="Paths that need no token; one may end in *.",
        rich_help_panel=SERVING,
    ),
]
RecordOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write down what is seen and decided, for `mooring replay`.",
        rich_help_panel=_RECORD,
    ),
]
RecordMaxSizeOption = Annotated[
    str,
    typer.Option(
        metavar="SIZE", help="How much of it is kept, in all its files.", rich_help_panel=_RECORD
    ),
]
VerbosityOption = Annotated[
    int,
    typer.Option(
        "-v",
        metavar="NUMBER",
        help="As kube-scheduler's: 4 or more is debug.",
        rich_help_panel=LOGS,
    ),
]
