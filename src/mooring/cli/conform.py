"""`mooring conform`: compare the engine with recorded verdicts of kube-scheduler."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .rendering import plain

if TYPE_CHECKING:
    from mooring.simulate.conform import Tally

# Exit code when a verdict differs from the recorded one.
_DIFFERENT = 1


def conform(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Files of recorded verdicts, one JSON document per line; may end in .gz.",
            show_default=False,
        ),
    ],
) -> None:
    """Compare the engine's verdicts with recorded verdicts of kube-scheduler.

    Prints every difference. Exit code: 0 if there is none, 1 if there is one, 2 if a file cannot be
    read.
    """
    # Here, so that the other commands start without NumPy.
    from mooring.engine.registry import registry
    from mooring.simulate.conform import conform
    from mooring.simulate.golden import read

    plugins = registry()
    tallies = conform((each for path in files for each in read(path)), plugins)
    for category, tally in tallies.items():
        _print(category, tally)
    steps = sum(tally.steps for tally in tallies.values())
    differences = sum(len(tally.differences) for tally in tallies.values())
    print(f"{'total':14} {steps:6} steps {differences:6} differences")
    sys.stdout.flush()
    if differences:
        raise typer.Exit(_DIFFERENT)


def _print(category: str, tally: Tally) -> None:
    counts = f"{tally.steps:6} steps {len(tally.differences):6} differences"
    print(f"{plain(category):14} {counts}  ({tally.scenarios} scenarios)")
    for skipped in tally.skipped:
        print(plain(f"  skipped {skipped}"))
    for each in tally.differences:
        where = f"{each.scenario} {each.pod}: {each.what}"
        print(plain(f"  {where}: recorded {each.recorded}, found {each.found}"))
