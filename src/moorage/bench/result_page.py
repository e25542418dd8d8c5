"""Results as one page of HTML that stands alone: figures, plots, and how they came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from .harness import Growth, Result
from .measurement import Measurement
from .plots import colours, growth_plot, histogram, over_time, row_colour
from .results import HEADERS, cells

_STYLE = """
:root { color-scheme: light dark; --paper: #f7f8fa; --card: #fff; --ink: #16202c;
  --faint: #56626f; --line: #d6dce3; --accent: #0b57a4; --bad: #a3271c; }
@media (prefers-color-scheme: dark) { :root { --paper: #10151b; --card: #181f27; --ink: #e6ebf0;
  --faint: #9aa7b4; --line: #2c3742; --accent: #7db8ff; --bad: #ff9b8f; DARK } }
* { box-sizing: border-box; }
html { font: 15px/1.45 system-ui, sans-serif; background: var(--paper); color: var(--ink); }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; margin: 0 0 .6rem; }
h2 { font-size: 1.05rem; margin: 1.6rem 0 .5rem; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; }
dt, figcaption, .hint { color: var(--faint); }
dd { margin: 0; }
dl, .table, figure { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .7rem .9rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; overflow-wrap: normal; }
td, th { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; white-space: nowrap; }
tbody th { font-weight: normal; white-space: normal; overflow-wrap: anywhere; min-width: 10rem; }
th:first-child, .why { text-align: left; white-space: normal; }
td.why { min-width: 14rem; }
th .why { display: block; }
.why { color: var(--faint); }
.why.bad { color: var(--bad); }
tr:last-child > * { border-bottom: 0; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 25rem), 1fr));
  gap: 1rem; }
figure { margin: 0; min-width: 0; }
svg { display: block; width: 100%; height: auto; }
ul { list-style: none; margin: .4rem 0 0; padding: 0; display: flex; flex-wrap: wrap;
  gap: .2rem 1rem; }
li::before { content: ""; display: inline-block; width: .8em; height: .8em; margin-right: .4em;
  border-radius: 2px; background: var(--of); }
"""

_HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<title>Moorage benchmark</title><style>{style}</style></head><body>"
)


def page(
    results: Sequence[Result], growths: Sequence[Growth], run: Mapping[str, str | int | float]
) -> str:
    """Writes the whole page."""
    parts = [_HEAD.format(style=_STYLE.replace("DARK", colours()))]
    parts.append(f"<header><h1>Moorage benchmark</h1>{_provenance(run)}</header><main>")
    parts += map(_growth_section, growths)
    if results:
        parts.append(_figures(results))
    parts += _sections(results)
    return "\n".join((*parts, "</main></body></html>\n"))


def _provenance(run: Mapping[str, str | int | float]) -> str:
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in run.items()
    )
    return f"<dl>{rows}</dl>"


def _figures(results: Sequence[Result]) -> str:
    first, *others = HEADERS
    heads = f'<th scope="col">{first}</th>' + "".join(
        f'<th scope="col">{header}</th>' for header in others
    )
    rows = "".join(row for result in results for row in _rows(result))
    return (
        "<h2>Figures</h2>"
        # A table that can be scrolled must be reached with the keyboard.
        '<div class="table" tabindex="0" role="region" aria-label="Figures">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _rows(result: Result) -> Iterator[str]:
    name = escape(result.title)
    kind = "why" if result.outcome.is_good else "why bad"
    why = escape(f"{result.outcome.value}: {result.why}")
    if not result.measured:
        label = f'<td class="{kind}" colspan="{len(HEADERS) - 1}">{why}</td>'
        yield f'<tr><th scope="row">{name}</th>{label}</tr>'
    for measured in result.measured:
        note = f'<span class="{kind}">{why}</span>' if result.why else ""
        named = f'<th scope="row"><a href="#{_anchor(result)}">{name}</a>{note}</th>'
        yield f"<tr>{named}{''.join(f'<td>{cell}</td>' for cell in cells(measured))}</tr>"


def _anchor(result: Result) -> str:
    return escape(result.job.full_name, quote=True)


def _sections(results: Sequence[Result]) -> Iterator[str]:
    """Draws the plots of each workload, all its runs together."""
    by_workload: dict[str, list[Result]] = {}
    for result in results:
        if result.measured:
            by_workload.setdefault(result.job.full_name, []).append(result)
    for name, runs in by_workload.items():
        plots = "".join(_plots(name, runs))
        if plots:
            heading = f'<h2 id="{_anchor(runs[0])}">{escape(name)}</h2>'
            yield f'<section>{heading}<div class="plots">{plots}</div></section>'


def _plots(name: str, runs: Sequence[Result]) -> Iterator[str]:
    drawn: dict[str, Measurement] = {}
    again: Counter[str] = Counter()
    for label, measured in _series(runs):
        again[label] += 1
        drawn[f"{label}, run {again[label]}" if again[label] > 1 else label] = measured
    if drawn:
        svg = over_time(name, [measured.placements for measured in drawn.values()])
        yield _figure(svg, "Throughput over time", list(drawn))
    # Decisions of further runs are much the same.
    for label in again:
        if drawn[label].decisions:
            who = f": {label}" if len(again) > 1 else ""
            yield _figure(histogram(f"{name}{who}", drawn[label]), f"Latency of decisions{who}")


def _series(runs: Sequence[Result]) -> Iterator[tuple[str, Measurement]]:
    """Yields what can be drawn over time, with the label of each."""
    for result in runs:
        for measured in result.measured:
            if len(measured.placements) > 1:
                what = measured.name if len(result.measured) > 1 or not result.by else ""
                yield ", ".join(filter(None, (result.by, what))), measured


def _figure(svg: str, caption: str, legend: Sequence[str] = ()) -> str:
    rows = "".join(
        f'<li style="--of: {colour}">{escape(label)}</li>'
        for label, colour in zip(legend, map(row_colour, range(len(legend))), strict=True)
    )
    named = f"<ul>{rows}</ul>" if len(legend) > 1 else ""
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption>{named}</figure>"


def _growth_section(growth: Growth) -> str:
    label = "; ".join(
        f"{what}: exponent {value:.2f}"
        for what, value in (
            ("time per pod over nodes", growth.with_nodes),
            ("time over pods", growth.with_pods),
        )
        if value is not None
    )
    parts = [f"<h2>Growth: {escape(growth.name)}</h2>"]
    if label:
        parts.append(f"<p>{escape(label)}</p>")
    if len({point.nodes for point in growth.points}) > 1:
        legend = [f"{pods:,} pods" for pods in growth.pod_counts]
        plot = _figure(growth_plot(growth, label), "Growth with nodes", legend)
        parts.append(f'<div class="plots">{plot}</div>')
    return f"<section>{''.join(parts)}</section>"
