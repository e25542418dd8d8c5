"""Telling what came of benchmarks: on the terminal, in files, and in the exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from mooring.bench.data_items import DataItems, write
from mooring.bench.growth import Growth
from mooring.bench.page import page
from mooring.bench.records import provenance
from mooring.bench.run import Result

from .bench_tables import figures, growths, side_by_side
from .text import plain

# Exit code when a threshold is missed or a run came to nothing.
_MISSED = 1


def tell_one(result: Result) -> None:
    """Says that a run is over, where no bar does: all runs together may take an hour."""
    if sys.stderr.isatty():
        return
    rates = ", ".join(f"{each.pods_per_second:,.0f} pods/s" for each in result.measured)
    told = plain(f"{result.title}: {rates or result.outcome.value}")
    print(told, file=sys.stderr, flush=True)


def tell(results: Sequence[Result], grown: Sequence[Growth], target: str, out: Path | None) -> None:
    """Shows and writes results; ends the command with the exit code for them."""
    print(figures(results))
    if len({result.by for result in results}) > 1:
        print(f"\n{side_by_side(results)}")
    if grown:
        print(f"\n{growths(grown)}")
    if out is not None:
        _write(results, grown, target, out)
    for line in _notes(results):
        print(plain(line), file=sys.stderr)
    sys.stdout.flush()
    if not all(result.outcome.is_good for result in results):
        raise typer.Exit(_MISSED)


def _write(results: Sequence[Result], grown: Sequence[Growth], target: str, out: Path) -> None:
    made_by = provenance(("mooring", *map(plain, sys.argv[1:])), target)
    items = [item for result in results for item in result.items]
    write(out / "results.json", DataItems(data_items=items, run=made_by))
    (out / "results.html").write_text(page(results, grown, made_by))


def _notes(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        if result.why:
            yield f"{result.title}: {result.outcome.value}: {result.why}"
