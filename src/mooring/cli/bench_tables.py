"""Results of benchmarks as tables for people."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mooring.bench.compare import Compared, geometric_mean, spread
from mooring.bench.figures import HEADERS, cells
from mooring.bench.growth import Growth
from mooring.bench.run import Outcome, Result

from .text import plain

# Output that goes to a file or a pipe is not wrapped.
_NO_LIMIT = 10_000

_SCHEDULER = "SCHEDULER"
_FIGURES = tuple(map(str.upper, HEADERS))


def figures(results: Sequence[Result]) -> str:
    """What each run measured, and what came of it."""
    rows: list[tuple[str, ...]] = []
    several = any(result.by for result in results)
    for result in results:
        told = "" if result.outcome is Outcome.MEASURED else result.outcome.value
        named = (result.job.full_name, result.by) if several else (result.job.full_name,)
        if not result.measured:
            rows.append((*named, *("-",) * 7, told))
        for measured in result.measured:
            rows.append((*named, *cells(measured), told))
    first, *others = _FIGURES
    headers = (first, _SCHEDULER, *others, "") if several else (first, *others, "")
    return _printed(_table(headers, rows))


def side_by_side(results: Sequence[Result]) -> str:
    """Pods a second of each scheduler on each workload, and how many times the last one's."""
    names = list(dict.fromkeys(result.by for result in results))
    rows = []
    for workload in dict.fromkeys(result.job.full_name for result in results):
        rates = [_rate(results, workload, name) for name in names]
        last = rates[-1]
        cells = [f"{rate:,.0f}" if rate else "-" for rate in rates]
        for at, rate in enumerate(rates[:-1]):
            cells[at] += f" ({rate / last:.2f}x)" if rate and last else ""
        rows.append((workload, *cells))
    return _printed(_table(("PODS/S", *names), rows))


def _rate(results: Sequence[Result], workload: str, by: str) -> float | None:
    """The median of a scheduler's runs of a workload that came to something."""
    rates = [
        measured.pods_per_second
        for result in results
        if (result.job.full_name, result.by) == (workload, by)
        for measured in result.measured
    ]
    return median(rates) if rates else None


def growths(grown: Sequence[Growth]) -> str:
    """The exponents of each sweep."""
    rows = [(each.name, _exponent(each.with_nodes), _exponent(each.with_pods)) for each in grown]
    headers = ("TEST CASE", "TIME PER POD ~ NODES^", "TIME ~ PODS^")
    return _printed(_table(headers, rows))


def comparison(compared: Sequence[Compared], before: str, after: str) -> str:
    """Both sets side by side, one block for each metric."""
    blocks = []
    for metric in dict.fromkeys((each.metric, each.unit) for each in compared):
        chosen = [each for each in compared if (each.metric, each.unit) == metric]
        headers = (f"{metric[0]} ({metric[1]})", before, after, "CHANGE", "P")
        rows = [_compared(each) for each in chosen]
        mean = geometric_mean([each.change for each in chosen if each.change is not None])
        if mean is not None:
            rows.append(("geometric mean", "", "", f"{mean:+.1%}", ""))
        blocks.append(_printed(_table(headers, rows)))
    return "\n\n".join(blocks) or "nothing to compare"


def _compared(each: Compared) -> tuple[str, ...]:
    change, chance = each.change, each.probability
    told = "-" if change is None else f"{change:+.1%}"
    if change is not None and chance is not None and not each.is_significant:
        told = "~"
    return (
        each.name,
        _figure(each.before),
        _figure(each.after),
        told,
        "" if chance is None else f"{chance:.3f} n={len(each.before)}+{len(each.after)}",
    )


def _figure(values: Sequence[float]) -> str:
    if not values:
        return "-"
    noise = spread(values)
    return f"{median(values):,.6g}" + ("" if noise is None else f" ±{noise:.0%}")


def _exponent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for at, header in enumerate(headers):
        is_text = at == 0 or header in (_SCHEDULER, "")
        table.add_column(header, justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        # As texts, because a string would be searched for markup.
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


def _printed(table: Table) -> str:
    console = Console(
        width=None if sys.stdout.isatty() else _NO_LIMIT, highlight=False, emoji=False, markup=False
    )
    with console.capture() as captured:
        console.print(table)
    return re.sub(r" +$", "", captured.get(), flags=re.MULTILINE).rstrip()
