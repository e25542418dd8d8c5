"""`mooring simulate`: schedule the pods of a cluster without writing to it."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from .rendering import ProgressBar, indent, line, note, plain, render, shorten, table, write_yaml

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from mooring.engine import Engine
    from mooring.simulate.loading import Input
    from mooring.simulate.transcript import PendingPod, PlacedPod, PreemptedPod, Transcript, Use
    from mooring.world import ClaimedVolume

    from .inputs import ConnectionOptions

# Exit code when a pod stays pending.
_PENDING = 1

_GIB = 2**30

_TRACES = "Traces"


class SimulateFormat(StrEnum):
    """Output formats of `mooring simulate`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


class ExtenderUse(StrEnum):
    """Whether extenders are asked."""

    ASK = "ask"
    SKIP = "skip"


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
ReportOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the figures of the trace, also over time, to this file: .json, or "
        ".html with plots.",
        rich_help_panel=_TRACES,
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
    verify_sample: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Decide this share of the pods a second time without stored answers, and compare.",
        ),
    ] = 0.0,
    most_classes: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT", min=1, help="Keep at most this many classes of like pods per profile."
        ),
    ] = None,
    extenders: Annotated[
        ExtenderUse,
        typer.Option(help="Ask the extenders of the configuration, or decide without them."),
    ] = ExtenderUse.SKIP,
    trace: TraceOption = None,
    against: AgainstOption = None,
    report: ReportOption = None,
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
    paths = [*(paths or ()), *(from_paths or ())]
    if trace is not None:
        from .emulation import choose_version
        from .inputs import EngineOptions
        from .traces import TraceQuestion, print_answer

        configs = (config, *(against or ()))
        version = choose_version(emulation_version)
        engines = [EngineOptions(each, feature_gates, plugins, version=version) for each in configs]
        question = TraceQuestion(trace, paths, engines, stays=no_departures)
        print_answer(question, report, output)
        return
    # Here, so that the other commands start without NumPy.
    from mooring.engine.actions import Report

    from .emulation import choose_version
    from .inputs import ConnectionOptions, EngineOptions

    connection = ConnectionOptions(kubeconfig, context, master)
    version = choose_version(emulation_version, None if paths else connection)
    options = EngineOptions(config, feature_gates, plugins, version=version)
    engine = options.engine(
        verify_share=verify_sample,
        most_classes=most_classes,
        asks_extenders=extenders is ExtenderUse.ASK,
    )
    manifests, transcript = _schedule(engine, paths, connection)
    reports = (action.message for _, action in transcript.story if isinstance(action, Report))
    for text in (*manifests.notes, *reports):
        note(text)
    print(_WRITERS[output](transcript))
    sys.stdout.flush()
    if transcript.pending:
        raise typer.Exit(_PENDING)


def _schedule(
    engine: Engine, paths: Sequence[str], connection: ConnectionOptions
) -> tuple[Input, Transcript]:
    """Reads a cluster and schedules its pods, and shows a progress bar."""
    from mooring.simulate.simulation import count_pending, simulate

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


def _write_wide(transcript: Transcript) -> str:
    return write_tables(transcript, wide=True)


def _write_json(transcript: Transcript) -> str:
    from mooring.simulate.transcript import to_builtins

    return json.dumps(to_builtins(transcript), indent=2)


def _write_yaml(transcript: Transcript) -> str:
    from mooring.simulate.transcript import to_builtins

    return write_yaml(to_builtins(transcript))


def write_tables(transcript: Transcript, *, wide: bool = False) -> str:
    """Writes placements, volumes, use per resource and pending pods as tables."""
    return render(_parts(transcript, wide=wide))


_WRITERS: dict[SimulateFormat, Callable[[Transcript], str]] = {
    SimulateFormat.TABLE: write_tables,
    SimulateFormat.WIDE: _write_wide,
    SimulateFormat.JSON: _write_json,
    SimulateFormat.YAML: _write_yaml,
}


def _parts(transcript: Transcript, *, wide: bool) -> Iterator[RenderableType]:
    from mooring.simulate.transcript import describe_reuse

    if transcript.placed:
        yield _placements(transcript.placed, wide=wide)
        yield ""
    if transcript.preempted:
        yield _preemptions(transcript.preempted)
        yield ""
    if transcript.volumes:
        yield _volumes(transcript.volumes)
        yield ""
    if transcript.use:
        yield _uses(transcript.use)
        yield ""
    for message, pods in _group(transcript.pending).items():
        count = "1 pod" if len(pods) == 1 else f"{len(pods)} pods"
        yield line(f"{count}: {message}")
        names = [each.pod.key for each in pods]
        yield indent(line(shorten(names, len(names)) if wide else shorten(names)))
        yield ""
    for profile, statistics in transcript.reuse.items():
        if statistics.decisions and (wide or statistics.verified):
            yield line(describe_reuse(profile, statistics))
    yield _totals(transcript)


def cores(milli: int) -> str:
    """Writes thousandths of a core as cores: 2, 0.5."""
    return f"{milli // 1000}.{milli % 1000:03d}".rstrip("0").rstrip(".")


def gibibytes(amount: int) -> str:
    """Writes bytes as GiB, to a tenth."""
    return f"{amount / _GIB:.1f}Gi"


def _placements(placed: Sequence[PlacedPod], *, wide: bool) -> Table:
    headers = ("NAMESPACE", "POD", "NODE")
    more = ("PROFILE", "PRIORITY", "ATTEMPTS", "CPU", "MEMORY") if wide else ()
    return table((*headers, *more), [_placement(each, wide=wide) for each in placed])


def _placement(placed: PlacedPod, *, wide: bool) -> tuple[str, ...]:
    from mooring.objects.resources import CPU, MEMORY

    pod = placed.pod
    where = pod.namespace, pod.name, placed.node
    if not wide:
        return where
    requests = dict(pod.requests)
    return (
        *where,
        placed.profile,
        str(pod.priority),
        str(placed.attempts),
        cores(requests.get(CPU, 0)),
        gibibytes(requests.get(MEMORY, 0)),
    )


def _preemptions(preempted: Sequence[PreemptedPod]) -> Table:
    rows = [(each.pod.namespace, each.pod.name, each.node, each.by) for each in preempted]
    return table(("NAMESPACE", "PREEMPTED", "FROM", "BY"), rows)


def _volumes(volumes: Sequence[ClaimedVolume]) -> Table:
    rows = [
        (
            each.claim.namespace,
            each.claim.name,
            each.volume.name,
            "provisioned" if each.provisioned else "existing",
            each.pod,
        )
        for each in volumes
    ]
    return table(("NAMESPACE", "CLAIM", "VOLUME", "SOURCE", "POD"), rows)


def _uses(uses: dict[str, Use]) -> Table:
    rows = [
        (
            name,
            *(_amount(name, each) for each in (use.allocatable, use.before, use.after)),
            f"{100 * use.after // use.allocatable}%" if use.allocatable > 0 else "-",
        )
        for name, use in uses.items()
    ]
    return table(("RESOURCE", "ALLOCATABLE", "BEFORE", "AFTER", "USE"), rows, numbers_from=1)


def _amount(resource: str, amount: int) -> str:
    from mooring.simulate.transcript import find_unit

    match find_unit(resource):
        case "millicores":
            return cores(amount)
        case "bytes":
            return gibibytes(amount)
        case _:
            return str(amount)


def _group(pending: Iterable[PendingPod]) -> dict[str, list[PendingPod]]:
    """Groups pending pods by their message."""
    groups: dict[str, list[PendingPod]] = {}
    for each in pending:
        groups.setdefault(plain(each.message), []).append(each)
    return groups


def _totals(transcript: Transcript) -> str:
    counts = [f"{len(transcript.placed)} placed", f"{len(transcript.pending)} pending"]
    if transcript.preempted:
        counts.append(f"{len(transcript.preempted)} preempted")
    return ", ".join((*counts, f"{transcript.nodes} nodes"))
