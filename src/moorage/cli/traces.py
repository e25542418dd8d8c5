"""`moorage simulate --trace`: pods that come and go, under one or several configurations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from moorage.documents.errors import InputError
from moorage.simulate.loading import load
from moorage.simulate.traces import read_trace
from moorage.simulate.traces.figures import TraceFigures, run_trace

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


def print_answer(question: TraceQuestion, output: str) -> None:
    """Runs the trace and prints the figures; as data, also over time."""
    found = answer(question)
    if not print_data(found, output):
        print(write_table(found))


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


def _has_gpus(found: Sequence[TraceFigures]) -> bool:
    return any(name.endswith("/gpu") for name in found[0].mean_use)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds >= _DAY:
        return f"{seconds / _DAY:,.1f} d"
    return f"{seconds / _HOUR:.1f} h" if seconds >= _HOUR else f"{seconds:,.1f} s"
