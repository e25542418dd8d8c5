"""`moorage simulate`: schedule the pods of a cluster without writing to it."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    OUTPUT,
    ConfigOption,
    ContextOption,
    EmulationVersionOption,
    FeatureGatesOption,
    FromOption,
    KubeconfigOption,
    MasterOption,
    PathsArgument,
    PluginsOption,
)
from .rendering import ProgressBar, note, write_yaml
from .simulate_text import write_tables

if TYPE_CHECKING:
    from moorage.engine import Engine
    from moorage.simulate.loading import Input
    from moorage.simulate.transcript import Transcript

    from .inputs import ConnectionOptions

# Exit code when a pod stays pending.
_PENDING = 1

_TRACES = "Traces"


class SimulateFormat(StrEnum):
    """Output formats of `moorage simulate`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


class ExtenderUse(StrEnum):
    """Whether extenders are asked."""

    ASK = "ask"
    SKIP = "skip"


VerifySampleOption = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        min=0.0,
        max=1.0,
        help="Decide this share of the pods a second time without stored answers, and compare.",
    ),
]
MostClassesOption = Annotated[
    int | None,
    typer.Option(
        metavar="COUNT", min=1, help="Keep at most this many classes of like pods per profile."
    ),
]
ExtendersOption = Annotated[
    ExtenderUse,
    typer.Option(help="Ask the extenders of the configuration, or decide without them."),
]
TraceOption = Annotated[
    Path | None,
    typer.Option(
        metavar="TRACE",
        help="Let pods come and go as in this trace: a recording, the folder of OpenB, or a CSV "
        "file (docs/traces.md).",
        rich_help_panel=_TRACES,
    ),
]
AgainstOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Also run the trace with this KubeSchedulerConfiguration. May be repeated.",
        rich_help_panel=_TRACES,
        show_default=False,
    ),
]
NoDeparturesOption = Annotated[
    bool,
    typer.Option(
        "--no-departures", help="Keep all pods of the trace until its end.", rich_help_panel=_TRACES
    ),
]


def simulate(  # noqa: PLR0913 - one for each flag
    paths: PathsArgument = None,
    from_paths: FromOption = None,
    output: Annotated[SimulateFormat, OUTPUT] = SimulateFormat.TABLE,
    config: ConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    emulation_version: EmulationVersionOption = "",
    plugins: PluginsOption = None,
    verify_sample: VerifySampleOption = 0.0,
    most_classes: MostClassesOption = None,
    extenders: ExtendersOption = ExtenderUse.SKIP,
    trace: TraceOption = None,
    against: AgainstOption = None,
    no_departures: NoDeparturesOption = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: MasterOption = None,
) -> None:
    """Schedule the pending pods of a cluster, and show where each pod would go. Writes nothing.

    Reads manifests, such as what `kubectl get nodes,pods,pv,pvc,sc,pdb -A -o yaml` prints, or the
    cluster from the API server.

    Exit code: 0 if every pod was placed, 1 if a pod stays pending, 2 if the input cannot be used.

    With --trace, pods come and go in virtual time, on the nodes of PATH or of the trace. The output
    shows how long pods waited and how full nodes were. Exit code: 0, or 2 if the input cannot be
    used.
    """
    # Here, so that the other commands start without NumPy.
    from .emulation import choose_version
    from .inputs import ConnectionOptions, EngineOptions

    paths = [*(paths or ()), *(from_paths or ())]
    if trace is not None:
        from .traces import TraceQuestion, print_answer

        configs = (config, *(against or ()))
        version = choose_version(emulation_version)
        engines = [EngineOptions(each, feature_gates, plugins, version=version) for each in configs]
        question = TraceQuestion(trace, paths, engines, stays=no_departures)
        print_answer(question, output)
        return
    connection = ConnectionOptions(kubeconfig, context, master)
    version = choose_version(emulation_version, None if paths else connection)
    options = EngineOptions(config, feature_gates, plugins, version=version)
    if not paths:
        connection.warn_of_options(options)
    engine = options.engine(
        verify_share=verify_sample,
        most_classes=most_classes,
        asks_extenders=extenders is ExtenderUse.ASK,
    )
    _print(*_schedule(engine, paths, connection), output)


def _schedule(
    engine: Engine, paths: Sequence[str], connection: ConnectionOptions
) -> tuple[Input, Transcript]:
    """Reads a cluster and schedules its pods, and shows a progress bar."""
    from moorage.simulate.simulation import count_pending, simulate

    from .inputs import find_cluster
    from .simulated_extenders import connect_extenders

    with ProgressBar() as bar:
        # All that is read stays until the end: searching it for garbage doubles the time.
        gc.disable()
        try:
            manifests = find_cluster(paths, connection, engine.handles.kinds)
        finally:
            gc.enable()
        bar.stage("scheduling", count_pending(manifests.objects))
        with connect_extenders(engine) as answer:
            return manifests, simulate(engine, manifests.objects, bar.update, answer)


def _print(manifests: Input, transcript: Transcript, output: SimulateFormat) -> None:
    """Prints what was decided, and exits with 1 if a pod stays pending."""
    from moorage.engine.actions import Report

    reports = (action.message for _, action in transcript.story if isinstance(action, Report))
    for text in (*manifests.notes, *reports):
        note(text)
    print(_WRITERS[output](transcript))
    sys.stdout.flush()
    if transcript.pending:
        raise typer.Exit(_PENDING)


def _write_wide(transcript: Transcript) -> str:
    return write_tables(transcript, wide=True)


def _write_json(transcript: Transcript) -> str:
    from moorage.simulate.transcript import to_builtins

    return json.dumps(to_builtins(transcript), indent=2)


def _write_yaml(transcript: Transcript) -> str:
    from moorage.simulate.transcript import to_builtins

    return write_yaml(to_builtins(transcript))


_WRITERS: dict[SimulateFormat, Callable[[Transcript], str]] = {
    SimulateFormat.TABLE: write_tables,
    SimulateFormat.WIDE: _write_wide,
    SimulateFormat.JSON: _write_json,
    SimulateFormat.YAML: _write_yaml,
}
