"""`moorage fit`: how many pods would fit, where, and what runs out first."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import (
    ContextOption,
    EmulationVersionOption,
    FeatureGatesOption,
    FromOption,
    KubeconfigOption,
    MasterOption,
    PathsArgument,
    PluginsOption,
)


class FitFormat(StrEnum):
    """The output formats. The last two are for workloads in CI."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    JUNIT = "junit"
    GITHUB = "github"


class FailOn(StrEnum):
    """What makes the command fail besides a new pod without a node."""

    NEW = "new"
    ANY = "any"
    UNKNOWN = "unknown"


FileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        help="Place copies of the pod in this file, or the workloads in it; - is standard input. "
        "May be repeated.",
    ),
]
FailOnOption = Annotated[
    list[FailOn] | None,
    typer.Option(
        help="What makes the command exit with 1: only a new pod without a node (new, the "
        "default), also one that waited before (any), also an object of which it is not known "
        "how many pods it makes (unknown). May be repeated.",
        show_default=False,
    ),
]
FormatOption = Annotated[
    FitFormat,
    typer.Option("--output", "-o", help="Output format; junit and github are for workloads."),
]
CountOption = Annotated[
    int, typer.Option(metavar="COUNT", min=1, help="Number of copies to place.")
]
GangOption = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="SIZE",
        help="Place gangs of this many copies, each as a whole or not at all. --count then "
        "counts gangs.",
        show_default=False,
    ),
]
TopologyOption = Annotated[
    str,
    typer.Option(
        metavar="KEY",
        help="With --gang: place each gang on nodes that share a value of this label.",
    ),
]
DrainOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NODE[,NODE...]", help="Assume that these nodes are drained, and place their pods."
    ),
]
AddNodesOption = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE=COUNT", help="Assume COUNT more nodes like the one in this file."),
]
ConfigOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Compare with what this KubeSchedulerConfiguration would decide. May be repeated with "
        "--reschedule.",
    ),
]
RescheduleOption = Annotated[
    bool,
    typer.Option(
        "--reschedule",
        help="Place all running pods anew, with each --config, and compare how full nodes are.",
    ),
]
SelectorOption = Annotated[
    str,
    typer.Option(
        "--selector",
        "-l",
        metavar="LABELS",
        help="With --reschedule: place only pods with these labels.",
    ),
]
BaseConfigOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The KubeSchedulerConfiguration that is in use now."),
]


def fit(  # noqa: PLR0913 - one for each flag
    paths: PathsArgument = None,
    from_paths: FromOption = None,
    file: FileOption = None,
    count: CountOption = 1,
    gang: GangOption = 0,
    topology: TopologyOption = "",
    fail_on: FailOnOption = None,
    drain: DrainOption = None,
    add_nodes: AddNodesOption = None,
    reschedule: RescheduleOption = False,
    selector: SelectorOption = "",
    config: ConfigOption = None,
    base_config: BaseConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    emulation_version: EmulationVersionOption = "",
    plugins: PluginsOption = None,
    output: FormatOption = FitFormat.TABLE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: MasterOption = None,
) -> None:
    """Show how many copies of a pod fit, which workloads do not, or where pending pods would go.

    With --gang, show how many gangs of such copies would fit, and what the next one lacks.

    With nodes drained or added, or with another configuration, the result is compared with the
    cluster as it is. If a workload runs already, its old pods make way as in a rollout. Changes
    nothing, and evicts no pod.

    Exit code: 0 if every pod finds a node, 1 if one does not or a disruption budget forbids a
    drain, 2 if the input cannot be used.
    """
    # Here, so that the other commands start without NumPy.
    from .emulation import choose_version
    from .explain_gangs import GANG_GATES
    from .fit_question import FitInput, answer_fit
    from .inputs import ConnectionOptions, EngineOptions

    gates = f"{GANG_GATES},{feature_gates}" if gang else feature_gates
    given = [*(paths or ()), *(from_paths or ())]
    connection = ConnectionOptions(kubeconfig, context, master)
    version = choose_version(emulation_version, None if given else connection)
    answer_fit(
        FitInput(
            [
                EngineOptions(each, gates, plugins, version=version)
                for each in (base_config, *(config or ()))
            ],
            given,
            connection,
            files=file or [],
            count=count,
            gang=gang,
            topology_key=topology,
            drain=[name for each in drain or () for name in each.split(",")],
            shapes=add_nodes or [],
            reschedule=reschedule,
            selector=selector,
        ),
        output.value,
        {each.value for each in fail_on or ()},
    )
