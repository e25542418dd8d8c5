"""Options of `mooring bench`: which workloads, measured on what; known without loading NumPy."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

ENGINE, EMBEDDED = "engine", "embedded"


class TargetName(StrEnum):
    """What workloads are run on."""

    ENGINE = "engine"


class Batching(StrEnum):
    """What holds for batching where a workload says nothing about it."""

    DEFAULT = "default"
    CASE = "case"
    BOTH = "both"

    @property
    def ways(self) -> tuple[Batching, ...]:
        """The ways to run each workload."""
        return (Batching.CASE, Batching.DEFAULT) if self is Batching.BOTH else (self,)

    @property
    def told(self) -> str:
        return "batching as the case says" if self is Batching.CASE else "default gates"


OnAnyTarget = Annotated[
    str,
    typer.Option(
        metavar="engine|embedded|KUBECONFIG",
        help="What to run them on: the engine alone, an embedded API server, or a real one that "
        "has neither nodes nor pods.",
    ),
]
Schedulers = Annotated[
    list[str] | None,
    typer.Option(
        "--scheduler",
        metavar="COMMAND",
        help="Measure this scheduler; may be given several times. {kubeconfig}, {config} and "
        "{gates} in it are replaced; `mooring` is Mooring itself.",
    ),
]
BatchingWays = Annotated[
    Batching,
    typer.Option(
        help="Where a workload says nothing about OpportunisticBatching: its default, off as in "
        "scheduler_perf (case), or both, one after the other."
    ),
]
Filter = Annotated[
    str, typer.Option("--filter", metavar="REGEX", help="Only workloads whose name matches.")
]
Labels = Annotated[
    str,
    typer.Option(
        metavar="A,-B", help="Only workloads with label A and without label B; '' is all."
    ),
]
Gates = Annotated[
    str, typer.Option(metavar="A=true,B=false", help="Feature gates, over those of a workload.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Write results.json (scheduler_perf's data items) and results.html."
    ),
]
CountOption = Annotated[int, typer.Option(min=1, help="How often to run each workload.")]
OnEngine = Annotated[TargetName, typer.Option(help="What to run them on.")]
