"""`mooring conform`: replay recorded verdicts of kube-scheduler, and tell every difference."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .text import plain

if TYPE_CHECKING:
    from mooring.simulate.conform import Tally

# Exit code when something was found otherwise than recorded.
_DIFFERENT = 1


def conform(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Recorded verdicts: a JSON document per line, perhaps compressed (.gz).",
            show_default=False,
        ),
    ],
) -> None:
    """Replay recorded verdicts of kube-scheduler and compare, step by step.

    Exits with 0 when there is no difference at all, 1 when there is one, 2 when a file cannot be
    read.
    """
    # Here, so that the other commands start without NumPy.
    from mooring.engine.registry import registry
    from mooring.simulate.conform import conform
    from mooring.simulate.golden import read

    plugins = registry()
    tallies = conform((each for path in files for each in read(path)), plugins)
    for category, tally in tallies.items():
        _tell(category, tally)
    steps = sum(tally.steps for tally in tallies.values())
    differences = sum(len(tally.differences) for tally in tallies.values())
    print(f"{'total':14} {steps:6} steps {differences:6} differences")
    sys.stdout.flush()
    if differences:
        raise typer.Exit(_DIFFERENT)


def _tell(category: str, tally: Tally) -> None:
    counts = f"{tally.steps:6} steps {len(tally.differences):6} differences"
    print(f"{plain(category):14} {counts}  ({tally.scenarios} scenarios)")
    for told in tally.skipped:
        print(plain(f"  skipped {told}"))
    for each in tally.differences:
        where = f"{each.scenario} {each.pod}: {each.what}"
        print(plain(f"  {where}: recorded {each.recorded}, found {each.found}"))
