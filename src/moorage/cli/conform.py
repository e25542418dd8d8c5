"""`moorage conform`: compare the engine with recorded verdicts of kube-scheduler."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AnswerFormat, OutputOption
from .rendering import plain, print_data

if TYPE_CHECKING:
    from moorage.simulate.conformance import CategoryResult

# Exit code when a verdict differs from the recorded one, or none was compared.
_NOT_EQUAL = 1


def conform(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Files of recorded verdicts, one JSON document per line; may end in .gz.",
            show_default=False,
        ),
    ],
    version: Annotated[
        str,
        typer.Option(
            metavar="VERSION",
            help="Version of the kube-scheduler that the verdicts were recorded from, 1.36 or 1.37."
            " Default: 1.37 for scenarios with pod groups, 1.36 for all others.",
            show_default=False,
        ),
    ] = "",
    output: OutputOption = AnswerFormat.TABLE,
) -> None:
    """Compare the engine's verdicts with recorded verdicts of kube-scheduler.

    Prints every difference, and every scenario that is skipped because its configuration asks for
    what Moorage does not have. Exit code: 0 if there is no difference, 1 if there is one or nothing
    was compared, 2 if a file cannot be read.
    """
    # Here, so that the other commands start without NumPy.
    from moorage.config.kubernetes_versions import read_version
    from moorage.engine.registry import registry
    from moorage.simulate.conformance import conform
    from moorage.simulate.verdicts import read_scenarios

    recorded_from = read_version(version, "--version") if version else None
    recordings = (each for path in files for each in read_scenarios(path))
    results = conform(recordings, registry(), recorded_from)
    if not print_data(results, output):
        for category, result in results.items():
            _print(category, result)
        _print_total(results.values())
    sys.stdout.flush()
    has_steps = any(result.steps for result in results.values())
    if not has_steps:
        is_skipped = any(result.skipped for result in results.values())
        why = "every scenario was skipped" if is_skipped else "there are no recorded verdicts"
        print(f"Nothing was compared: {why}.", file=sys.stderr)
    if not has_steps or any(result.differences for result in results.values()):
        raise typer.Exit(_NOT_EQUAL)


def _print(category: str, result: CategoryResult) -> None:
    counts = f"{result.steps:6} steps {len(result.differences):6} differences"
    skipped_too = f", {len(result.skipped)} skipped" if result.skipped else ""
    print(f"{plain(category):14} {counts}  ({result.scenarios} scenarios{skipped_too})")
    for skipped in result.skipped:
        print(plain(f"  skipped {skipped}"))
    for each in result.differences:
        where = f"{each.scenario} {each.pod}: {each.what}"
        print(plain(f"  {where}: recorded {each.recorded}, found {each.found}"))


def _print_total(results: Collection[CategoryResult]) -> None:
    steps = sum(result.steps for result in results)
    differences = sum(len(result.differences) for result in results)
    skipped = sum(len(result.skipped) for result in results)
    skipped_too = f" {skipped:6} scenarios skipped" if skipped else ""
    print(f"{'total':14} {steps:6} steps {differences:6} differences{skipped_too}")
