"""Results of `moorage bench`: tables on the terminal, files, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

import typer

from moorage.bench.comparison import MetricChange, geometric_mean, spread
from moorage.bench.harness import Result, RunOutcome
from moorage.bench.results import HEADERS, DataItems, cells, provenance, write_results

from .rendering import plain, render, table

# Exit code when a threshold is missed or a run failed.
_MISSED = 1

_FIGURES = tuple(map(str.upper, HEADERS))


def report_run(result: Result) -> None:
    """Prints one run when it ends, because all runs together may take an hour.

    It prints nothing where there is a progress bar.
    """
    if sys.stderr.isatty():
        return
    rates = ", ".join(f"{each.pods_per_second:,.0f} pods/s" for each in result.measured)
    print(plain(f"{result.title}: {rates or result.outcome.value}"), file=sys.stderr, flush=True)


def report(results: Sequence[Result], target: str, out: Path | None) -> None:
    """Prints and writes results, and ends the command with the exit code for them."""
    print(figure_table(results))
    if len({result.by for result in results}) > 1:
        print(f"\n{scheduler_table(results)}")
    if out is not None:
        _write(results, target, out)
    for text in _notes(results):
        print(plain(text), file=sys.stderr)
    sys.stdout.flush()
    if not all(result.outcome.is_good for result in results):
        raise typer.Exit(_MISSED)


def _write(results: Sequence[Result], target: str, out: Path) -> None:
    made_by = provenance(("moorage", *map(plain, sys.argv[1:])), target)
    items = [item for result in results for item in result.items]
    write_results(out / "results.json", DataItems(data_items=items, run=made_by))


def _notes(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        if result.why:
            yield f"{result.title}: {result.outcome.value}: {result.why}"


def figure_table(results: Sequence[Result]) -> str:
    """Shows what each run measured and how it ended."""
    rows: list[tuple[str, ...]] = []
    several = any(result.by for result in results)
    for result in results:
        outcome = "" if result.outcome is RunOutcome.MEASURED else result.outcome.value
        names = (result.job.full_name, result.by) if several else (result.job.full_name,)
        if not result.measured:
            rows.append((*names, *("-",) * 7, outcome))
        for measured in result.measured:
            rows.append((*names, *cells(measured), outcome))
    first, *others = _FIGURES
    if several:
        return _draw((first, "SCHEDULER", *others, ""), rows, numbers_from=2)
    return _draw((first, *others, ""), rows)


def scheduler_table(results: Sequence[Result]) -> str:
    """Shows pods per second of each scheduler, and its ratio to the last scheduler."""
    names = list(dict.fromkeys(result.by for result in results))
    rows = []
    for workload in dict.fromkeys(result.job.full_name for result in results):
        rates = [_median_rate(results, workload, name) for name in names]
        last = rates[-1]
        texts = [f"{rate:,.0f}" if rate else "-" for rate in rates]
        for at, rate in enumerate(rates[:-1]):
            texts[at] += f" ({rate / last:.2f}x)" if rate and last else ""
        rows.append((workload, *texts))
    return _draw(("PODS/S", *names), rows)


def _median_rate(results: Sequence[Result], workload: str, by: str) -> float | None:
    """Returns the median of a scheduler's runs of a workload, except those that failed."""
    rates = [
        measured.pods_per_second
        for result in results
        if (result.job.full_name, result.by) == (workload, by)
        for measured in result.measured
    ]
    return median(rates) if rates else None


def comparison_tables(compared: Sequence[MetricChange], before: str, after: str) -> str:
    """Shows both sets side by side, one block for each metric."""
    blocks = []
    for metric in dict.fromkeys((each.metric, each.unit) for each in compared):
        chosen = [each for each in compared if (each.metric, each.unit) == metric]
        headers = (f"{metric[0]} ({metric[1]})", before, after, "CHANGE", "P")
        rows = [_comparison_row(each) for each in chosen]
        mean = geometric_mean([each.change for each in chosen if each.change is not None])
        if mean is not None:
            rows.append(("geometric mean", "", "", f"{mean:+.1%}", ""))
        blocks.append(_draw(headers, rows))
    return "\n\n".join(blocks) or "nothing to compare"


def _comparison_row(each: MetricChange) -> tuple[str, ...]:
    change, chance = each.change, each.probability
    text = "-" if change is None else f"{change:+.1%}"
    if change is not None and chance is not None and not each.is_significant:
        text = "~"
    return (
        each.name,
        _median(each.before),
        _median(each.after),
        text,
        "" if chance is None else f"{chance:.3f} n={len(each.before)}+{len(each.after)}",
    )


def _median(values: Sequence[float]) -> str:
    if not values:
        return "-"
    noise = spread(values)
    return f"{median(values):,.6g}" + ("" if noise is None else f" ±{noise:.0%}")


def _draw(headers: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int = 1) -> str:
    return render([table(headers, rows, numbers_from, gap=2)])
