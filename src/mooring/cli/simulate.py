"""`mooring simulate`: schedule the pods of a cluster that exists only in files."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from .options import OUTCOME, ConfigOption, FeatureGatesOption, PluginsOption
from .progress import ProgressBar
from .text import plain

if TYPE_CHECKING:
    from mooring.simulate.transcript import Transcript

# Exit code when a pod stays pending.
_PENDING = 1


class Output(StrEnum):
    """How the outcome is written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


def simulate(  # noqa: PLR0913 - one for each flag
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="YAML or JSON files or directories with nodes and pods; - is standard input.",
            show_default=False,
        ),
    ],
    output: Annotated[Output, OUTCOME] = Output.TABLE,
    config: ConfigOption = None,
    feature_gates: FeatureGatesOption = "",
    plugins: PluginsOption = None,
    verify_sample: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Decide this share of the pods once more, without reuse, and compare.",
        ),
    ] = 0.0,
    most_classes: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT", min=1, help="How many classes of like pods to keep per profile."
        ),
    ] = None,
) -> None:
    """Schedule the pending pods of a cluster given as manifests, and show where they go.

    Takes what `kubectl get nodes,pods,pv,pvc,sc,pdb -A -o yaml` prints. Exits with 0 when every pod
    was placed, 1 when a pod stays pending, 2 when the input cannot be used.
    """
    # Here, so that the other commands start without NumPy.
    from mooring.engine.actions import Report
    from mooring.simulate.loading import load
    from mooring.simulate.run import pending, simulate

    from .scheduler import Deciding

    deciding = Deciding(config, feature_gates, plugins)
    scheduler = deciding.engine(verify_share=verify_sample, most_classes=most_classes)
    with ProgressBar() as bar:
        # What is read stays until the end: looking for garbage among it doubles the time.
        gc.disable()
        try:
            given = load(paths, scheduler.handles.kinds)
        finally:
            gc.enable()
        bar.stage("scheduling", pending(given.objects))
        transcript = simulate(scheduler, given.objects, bar.update)
    reports = (action.message for _, action in transcript.story if isinstance(action, Report))
    for note in (*given.notes, *reports):
        print(plain(f"note: {note}"), file=sys.stderr)
    print(_WRITERS[output](transcript))
    sys.stdout.flush()
    if transcript.pending:
        raise typer.Exit(_PENDING)


def _table(transcript: Transcript) -> str:
    from .tables import tables

    return tables(transcript)


def _wide(transcript: Transcript) -> str:
    from .tables import tables

    return tables(transcript, wide=True)


def _json(transcript: Transcript) -> str:
    from mooring.simulate.report import structure

    return json.dumps(structure(transcript), indent=2)


def _yaml(transcript: Transcript) -> str:
    import yaml

    from mooring.simulate.report import structure

    # PyYAML may be built without libyaml, which is ten times as fast.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    # All but ASCII is written as escapes, so that no name reaches the terminal raw.
    return yaml.dump(structure(transcript), Dumper=dumper, sort_keys=False, width=100).rstrip()


_WRITERS: dict[Output, Callable[[Transcript], str]] = {
    Output.TABLE: _table,
    Output.WIDE: _wide,
    Output.JSON: _json,
    Output.YAML: _yaml,
}
