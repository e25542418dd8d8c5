"""`moorage simulate --trace`: pods that come and go, under one or several configurations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path

import msgspec

from moorage.bench.plots import Axis, colours, lines, row_colour
from moorage.documents.errors import InputError
from moorage.simulate.loading import load
from moorage.simulate.traces import read_trace
from moorage.simulate.traces.figures import TraceFigures, TraceSample, run_trace

from .inputs import EngineOptions
from .rendering import note, plain, print_data, render, table

_DAY, _HOUR = 86_400.0, 3_600.0


@dataclass(frozen=True, slots=True)
class TraceQuestion:
    """The question: which trace, on which cluster, with which configurations."""

    trace: Path
    #: Manifests of the cluster; without any, it is that of the trace.
    cluster: Sequence[str]
    #: The first is that of --config.
    engines: Sequence[EngineOptions]
    #: Whether no pod leaves.
    stays: bool = False


def print_answer(question: TraceQuestion, report: Path | None, output: str) -> None:
    """Runs the trace and prints the figures; writes them, also over time, to a file."""
    found = answer(question)
    if not print_data(found, output):
        print(write_table(found))
    if report is not None:
        report.write_text(write_page(found) if report.suffix == ".html" else write_json(found))


def answer(question: TraceQuestion) -> list[TraceFigures]:
    """Runs the trace under each configuration. Raises InputError or ConfigError."""
    trace = read_trace(question.trace)
    # Before the first run, which may take long, so that no mistake is found after it.
    engines = [each.engine(asks_extenders=False) for each in question.engines]
    if question.stays:
        trace = trace.without_ends()
    if question.cluster:
        found = load(question.cluster, engines[0].handles.kinds)
        for text in found.notes:
            note(text)
        trace = trace.on(found.objects)
    if not (trace.nodes or trace.changes):
        raise InputError(question.trace, "has no nodes: give manifests with nodes, too")
    names = [_name(options) for options in question.engines]
    return [run_trace(name, engine, trace) for name, engine in zip(names, engines, strict=True)]


def _name(options: EngineOptions) -> str:
    return "default" if options.config is None else options.config.stem


def write_table(found: Sequence[TraceFigures]) -> str:
    """Returns the figures of all configurations side by side."""
    rows = [(name, *(read(each) for each in found)) for name, read in _rows(found)]
    return render([table(["", *(plain(each.name) for each in found)], rows, 1, whole=1)])


def _rows(found: Sequence[TraceFigures]) -> Iterator[tuple[str, Callable[[TraceFigures], str]]]:
    yield f"pods placed, of {found[0].pods:,}", lambda each: f"{each.placed:,}"
    yield "waiting at the end", lambda each: f"{each.left_waiting:,}"
    yield "preemptions", lambda each: f"{each.preemptions:,}"
    for name in found[0].waiting_seconds:
        yield f"waiting, {name}", partial(_show_wait, name)
    for name in found[0].mean_use:
        yield f"{name} in use, mean", partial(_show_use, name)
    if any(each.most_stranded_gpus for each in found) or _has_gpus(found):
        yield "GPUs stranded, mean", lambda each: f"{each.mean_stranded_gpus:,.1f}"
        yield "GPUs stranded, most", lambda each: f"{each.most_stranded_gpus:,}"
    yield "virtual time", lambda each: _time(each.seconds)


def _show_wait(name: str, figures: TraceFigures) -> str:
    return _time(figures.waiting_seconds.get(name))


def _show_use(name: str, figures: TraceFigures) -> str:
    return f"{figures.mean_use.get(name, 0.0):.1f}%"


def _use_of(name: str, sample: TraceSample) -> float:
    return sample.use.get(name, 0.0)


def _has_gpus(found: Sequence[TraceFigures]) -> bool:
    return any(name.endswith("/gpu") for name in found[0].mean_use)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds >= _DAY:
        return f"{seconds / _DAY:,.1f} d"
    return f"{seconds / _HOUR:.1f} h" if seconds >= _HOUR else f"{seconds:,.1f} s"


def write_json(found: Sequence[TraceFigures]) -> str:
    return msgspec.json.format(msgspec.json.encode(list(found)), indent=2).decode()


def write_page(found: Sequence[TraceFigures]) -> str:
    """Returns the figures, also over time, as an HTML page that loads no other file."""
    legend = " ".join(
        f'<b style="color:{row_colour(at)}">{escape(each.name)}</b>'
        for at, each in enumerate(found)
    )
    plots = "".join(
        f"<figure><figcaption>{escape(title)}</figcaption>{picture}</figure>"
        for title, picture in _plots(found)
    )
    return (
        '<!doctype html><meta charset="utf-8"><title>A trace in Moorage</title>'
        "<style>body{font:15px/1.5 system-ui;margin:2em;color-scheme:light dark}"
        "figure{display:inline-block;width:30em;margin:1em 2em 1em 0}"
        f"@media(prefers-color-scheme:dark){{:root{{{colours()}}}}}</style>"
        f"<h1>A trace in Moorage</h1><pre>{escape(write_table(found))}</pre>"
        f"<h2>Over time: {legend}</h2>{plots}"
    )


def _plots(found: Sequence[TraceFigures]) -> Iterator[tuple[str, str]]:
    yield "pods that wait", _plot("pods", found, lambda each: each.waiting)
    yield "pods that run", _plot("pods", found, lambda each: each.running)
    for name in found[0].mean_use:
        if name != "pods":
            title = f"{name} in use"
            yield title, _plot("percent", found, partial(_use_of, name))
    if _has_gpus(found):
        yield "GPUs stranded", _plot("GPUs", found, lambda each: each.stranded_gpus)
    if any(each.preemptions for each in found):
        yield "preemptions so far", _plot("pods", found, lambda each: each.preemptions)


def _plot(title: str, found: Sequence[TraceFigures], read: Callable[[TraceSample], float]) -> str:
    first = min((each.samples[0].at for each in found if each.samples), default=0.0)
    drawn = [[((each.at - first) / _DAY, read(each)) for each in one.samples] for one in found]
    last = max((at for points in drawn for at, _ in points), default=1.0)
    highest = max((value for points in drawn for _, value in points), default=0.0)
    x, y = Axis("days", 0.0, max(last, 1e-6)), Axis(title, 0.0, max(highest * 1.05, 1.0))
    return lines(title, x, y, drawn)
