"""`mooring fit --gang`: how many gangs of copies of a pod would fit, what the next one lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from mooring.simulate.gang_fit import GangComparison, GangFit, GangQuestion, fit_gangs

from .explain_gangs import gang_parts
from .explain_text import NodeNames
from .rendering import line, print_data, render, shorten, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mooring.engine import Engine
    from mooring.world import Scene

# Exit code when a gang finds no place.
_LEFT = 1

# `-o json` prints the others too.
_MOST_ROWS = 10


def place_gangs(
    engines: tuple[Engine, Engine],
    scenes: tuple[Scene, Scene],
    question: GangQuestion,
    is_compared: bool,
    output: str,
) -> None:
    """Places gangs and prints the outcome; exits with 1 if one does not fit."""
    after = fit_gangs(engines[0], scenes[0], question)
    result: GangFit | GangComparison = after
    if is_compared:
        before, after = after, fit_gangs(engines[1], scenes[1], question)
        result = GangComparison(before, after)
    if not print_data(result, output):
        print(render(_parts(result)))
    if after.placed < after.asked:
        raise typer.Exit(_LEFT)


def _parts(result: GangFit | GangComparison) -> Iterator[RenderableType]:
    if isinstance(result, GangFit):
        yield from _fit_parts(result)
        return
    rows = [
        (name, str(fit.node_count), str(fit.asked), str(fit.placed), str(fit.asked - fit.placed))
        for name, fit in (("as it is", result.before), ("what if", result.after))
    ]
    yield table(("", "NODES", "GANGS", "PLACED", "LEFT"), rows, numbers_from=1)
    yield ""
    yield from _fit_parts(result.after)


def _fit_parts(fit: GangFit) -> Iterator[RenderableType]:
    gangs = f"gang{'s' * (fit.asked != 1)} of {fit.size}"
    verb = "fits" if fit.asked == 1 else "fit"
    colour = "bold green" if fit.placed == fit.asked else "bold red"
    yield line(f"{fit.placed} of {fit.asked} {gangs} {verb} on {fit.node_count} nodes", colour)
    if fit.gangs:
        yield ""
        yield _gangs(fit)
        left = fit.placed - _MOST_ROWS
        if left > 0:
            yield line(f"and {left} more, see -o json")
    if fit.why is not None:
        yield ""
        yield from gang_parts(fit.why)


def _gangs(fit: GangFit) -> RenderableType:
    names = NodeNames(share.node for gang in fit.gangs for share in gang.nodes)
    rows = []
    for number, gang in enumerate(fit.gangs[:_MOST_ROWS], 1):
        where = [f"{names.shorten(each.node)} ({each.count})" for each in gang.nodes]
        row = (str(number), gang.domain, str(len(gang.nodes)), shorten(where))
        rows.append(row if fit.topology_key else (row[0], *row[2:]))
    key = (fit.topology_key.upper(),) if fit.topology_key else ()
    return table(("GANG", *key, "NODES", "ON"), rows)
