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
from mooring.bench.growth import Growth
from mooring.bench.page import cells
from mooring.bench.run import Outcome, Result

from .text import plain

# Output that goes to a file or a pipe is not wrapped.
_NO_LIMIT = 10_000

_FIGURES = ("WORKLOAD", "PODS", "PODS/S", "DECISIONS/S", "P50 MS", "P99 MS", "CPU US/POD", "MB")


def figures(results: Sequence[Result]) -> str:
    """What each run measured, and what came of it."""
    rows: list[tuple[str, ...]] = []
    for result in results:
        told = "" if result.outcome is Outcome.MEASURED else result.outcome.value
        if not result.measured:
            rows.append((result.job.full_name, *("-",) * 7, told))
        for measured in result.measured:
            rows.append((result.job.full_name, *cells(measured), told))
    return _printed(_table((*_FIGURES, ""), rows))


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
        is_text = at == 0 or at == len(_FIGURES)
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
