"""The flags of `mooring up`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import LogLevel

_DEMO, _SERVER, _PODS, _SCHEDULER = "Demo", "API server", "Pods", "Scheduler"


class Scheduling(StrEnum):
    """How the scheduler talks to the API server."""

    DIRECT = "direct"
    HTTP = "http"
    NONE = "none"


NodesOption = Annotated[
    str,
    typer.Option(
        metavar="COUNT|FILE",
        help="How many nodes, or a file with their shapes (docs/embedded-cluster.md).",
    ),
]
KubeconfigOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where to write how to get there; else a temporary file."),
]
ForOption = Annotated[
    float | None,
    typer.Option(
        "--for",
        metavar="SECONDS",
        min=0.0,
        help="Stop so long after it is ready, for scripts; else when told to.",
    ),
]
LogLevelOption = Annotated[LogLevel, typer.Option()]

DemoOption = Annotated[
    bool,
    typer.Option(
        "--demo",
        help="Tell a story of about a minute, on nodes of its own, then stay up.",
        rich_help_panel=_DEMO,
    ),
]
OnceOption = Annotated[
    bool,
    typer.Option(
        "--once",
        help="Stop when it is told, for scripts: 0 if every promise was kept, else 1.",
        rich_help_panel=_DEMO,
    ),
]
NoBrowserOption = Annotated[
    bool,
    typer.Option("--no-browser", help="Do not open the page.", rich_help_panel=_DEMO),
]
PaceOption = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=0.0,
        help="Time to read each step: 3 seconds, or none with --once.",
        rich_help_panel=_DEMO,
    ),
]

ListenOption = Annotated[str, typer.Option(metavar="ADDRESS", rich_help_panel=_SERVER)]
PortOption = Annotated[
    int, typer.Option(min=0, max=65535, help="0 takes a free one.", rich_help_panel=_SERVER)
]
TokenOption = Annotated[
    str,
    typer.Option(
        metavar="TEXT",
        envvar="MOORING_UP_TOKEN",
        help="What clients must know; else a random one.",
        rich_help_panel=_SERVER,
    ),
]
DataDirOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Keep the cluster here, and go on with it next time; else it lives in memory.",
        rich_help_panel=_SERVER,
    ),
]

RunSecondsOption = Annotated[
    float,
    typer.Option(
        min=0.0,
        metavar="SECONDS",
        help="How long pods run before they succeed, unless they are restarted for ever.",
        rich_help_panel=_PODS,
    ),
]
StartSecondsOption = Annotated[
    float,
    typer.Option(
        min=0.0, metavar="SECONDS", help="How long they take to start.", rich_help_panel=_PODS
    ),
]
StopSecondsOption = Annotated[
    float,
    typer.Option(
        min=0.0,
        metavar="SECONDS",
        help="How long they take to stop, their grace period at most.",
        rich_help_panel=_PODS,
    ),
]

SchedulerOption = Annotated[
    Scheduling,
    typer.Option(
        help="How the scheduler talks to the API server; `none` leaves room for another.",
        rich_help_panel=_SCHEDULER,
    ),
]
NoSchedulerOption = Annotated[
    bool, typer.Option("--no-scheduler", help="As none.", rich_help_panel=_SCHEDULER)
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration.", rich_help_panel=_SCHEDULER),
]
