"""`moorage fit -f` with workloads: which do not fit, why, and what would help."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent as indent_xml, tostring

import typer
from msgspec.structs import replace

from moorage.simulate.drain import describe_delays, describe_refusals
from moorage.simulate.loading import Additions, Input, load_additions
from moorage.simulate.workload_fit import WorkloadFit, WorkloadsFit, fit_workloads, left_over
from moorage.simulate.workload_pods import NotUnderstood

from .drain_text import drain_parts
from .explain_text import NodeNames, advice_lines
from .rendering import count, find, indent, line, note, plain, print_data, render, shorten, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moorage.engine import Engine
    from moorage.world import Scene

# Exit code when a pod finds no node.
_LEFT = 1


def load_files(files: Sequence[str], cluster: Input) -> Additions | None:
    """Reads what is to be placed; None without a file."""
    if not files:
        return None
    additions = load_additions(files, cluster)
    for text in additions.notes:
        note(text)
    return additions


def is_single_pod(additions: Additions) -> bool:
    """Whether there is only one pod to place, which may be copied."""
    return [each.kind for each in additions.workloads] == ["Pod"] and not additions.unknown


# Beside a longer name a table has no room for all of its columns.
_LONGEST_NAME = 36


def place_workloads(
    engine: Engine, scene: Scene, additions: Additions, output: str, fail_on: Collection[str]
) -> None:
    """Places workloads and prints the outcome; exits with 1 if one does not fit."""
    placed = fit_workloads(engine, scene, additions.workloads, additions.objects)
    found = replace(placed, unknown=additions.unknown)
    if output == "junit":
        print(write_junit(found, fail_on))
    elif output == "github":
        for text in write_annotations(found, fail_on):
            print(text)
        write_summary(found)
    elif not print_data(found, output):
        print(render(_parts(found)))
    if any(left_over(found)) or any(_find_failures(found, fail_on)):
        raise typer.Exit(_LEFT)


def _find_failures(fit: WorkloadsFit, fail_on: Collection[str]) -> Iterator[str]:
    """Yields what makes the command fail though every workload fits."""
    if fit.drain is not None:
        yield from describe_refusals(fit.drain)
        if fit.drain.left:
            pods = count(len(fit.drain.left), "pod")
            yield f"{pods} of drained nodes {find(len(fit.drain.left))} no other node"
    if "any" in fail_on and fit.still_waiting:
        yield _describe_waiting(fit)
    if fit.unknown and ("unknown" in fail_on or not fit.workloads):
        yield f"{count(len(fit.unknown), 'object')} not understood"


def _parts(fit: WorkloadsFit) -> Iterator[RenderableType]:
    left = list(left_over(fit))
    yield line(_headline(fit), "bold red" if left else "bold green")
    yield from drain_parts(fit.drain)
    if fit.drain is not None and fit.drain.left:
        pods = count(len(fit.drain.left), "pod")
        text = f"{pods} of drained nodes {find(len(fit.drain.left))} no other node"
        yield line(f"{text}: {shorten(fit.drain.left)}", "bold red")
    if fit.waited:
        yield line(_describe_waiting(fit), "dim")
    yield from (line(f"not understood: {each.text}", "yellow") for each in fit.unknown)
    names = NodeNames(node.node for each in fit.workloads for node in each.nodes)
    if names.ending:
        yield line(f"(node names end in {names.ending})", "dim")
    if fit.workloads:
        yield ""
        yield from _list_workloads(fit, names)
    for each in left:
        yield ""
        yield line(f"{each.workload}: {_describe_left(each)}", "bold")
        yield from (indent(line(text)) for text in _reasons(each))


def _headline(fit: WorkloadsFit) -> str:
    left = len(list(left_over(fit)))
    nodes, workloads = count(fit.node_count, "node"), count(len(fit.workloads), "workload")
    if left:
        return f"{left} of {workloads} {'does' if left == 1 else 'do'} not fit on {nodes}"
    return f"{workloads} fit{'s' * (len(fit.workloads) == 1)} on {nodes}"


def _describe_waiting(fit: WorkloadsFit) -> str:
    still = len(fit.still_waiting)
    return f"{count(fit.waited, 'pod')} waited before; {still} of them {find(still)} no node"


def _describe_left(fit: WorkloadFit) -> str:
    left = fit.asked - fit.placed
    return f"{left} of {count(fit.asked, 'pod')} {find(left)} no node"


def _list_workloads(fit: WorkloadsFit, names: NodeNames) -> Iterator[RenderableType]:
    """Yields a table; if names are too long for one, two lines per workload."""
    if max((len(each.workload) for each in fit.workloads), default=0) <= _LONGEST_NAME:
        rows = [
            (each.workload, str(each.asked), str(each.placed), str(each.replaced or "-"), nodes)
            for each, nodes in ((each, _nodes(each, names)) for each in fit.workloads)
        ]
        yield table(("WORKLOAD", "PODS", "FIT", "REPLACED", "ON"), rows, whole=4)
        return
    for each in fit.workloads:
        yield line(each.workload)
        on = f" on {_nodes(each, names)}" if each.placed else ""
        are = "is" if each.replaced == 1 else "are"
        replaced = f"; {each.replaced} {are} replaced" if each.replaced else ""
        fits = "fits" if each.asked == 1 else "fit"
        text = f"{each.placed} of {count(each.asked, 'pod')} {fits}{on}{replaced}"
        yield indent(line(text, "green" if each.fits else "red"))


def _nodes(fit: WorkloadFit, names: NodeNames) -> str:
    return shorten([f"{names.shorten(each.node)} ({each.count})" for each in fit.nodes], 3) or "-"


def _reasons(fit: WorkloadFit) -> Iterator[str]:
    """Yields why pods of a workload find no node, and what would help."""
    yield fit.message
    if fit.stay:
        pods, stay = count(fit.stay, "pod"), "stays" if fit.stay == 1 else "stay"
        yield f"the rollout stops there: {pods} of the older version {stay}"
    if fit.why is not None:
        yield from advice_lines(fit.why, 2)


def write_junit(fit: WorkloadsFit, fail_on: Collection[str]) -> str:
    """Returns a test suite with one test per workload, for CI servers that read JUnit's XML."""
    others = [*_find_failures(fit, fail_on)]
    failures = len(list(left_over(fit))) + len(others)
    tests = len(fit.workloads) + len(others)
    suite = Element("testsuite", name="moorage fit", tests=str(tests), failures=str(failures))
    for each in fit.workloads:
        case = _add_case(suite, plain(each.workload))
        if not each.fits:
            reasons = "\n".join(map(plain, _reasons(each)))
            SubElement(case, "failure", message=_describe_left(each)).text = reasons
    for text in others:
        case = _add_case(suite, plain(text))
        details = [plain(each.text) for each in fit.unknown] if text.endswith("stood") else []
        SubElement(case, "failure", message=plain(text)).text = "\n".join(details)
    indent_xml(suite)
    return tostring(suite, encoding="unicode", xml_declaration=True)


def _add_case(suite: Element, name: str) -> Element:
    return SubElement(suite, "testcase", classname="moorage.fit", name=name)


def write_annotations(fit: WorkloadsFit, fail_on: Collection[str]) -> Iterator[str]:
    """Yields workflow commands that GitHub shows as annotations, beside the lines they are about.

    What fits is not annotated: the first line, which is none, says how many workloads do.
    """
    yield plain(_headline(fit))
    for each in left_over(fit):
        text = "\n".join((_describe_left(each), *map(plain, _reasons(each))))
        yield f"::error {_place(each)}title={_escape_property(each.workload)}::{_escape(text)}"
    level = "error" if "unknown" in fail_on else "warning"
    for one in fit.unknown:
        title = _escape_property(f"not understood: {one.object}")
        yield f"::{level} {_place(one)}title={title}::{_escape(plain(one.text))}"
    for text in _find_failures(replace(fit, unknown=()), fail_on):
        yield f"::error title=moorage fit::{_escape(plain(text))}"


def write_summary(fit: WorkloadsFit) -> None:
    """Adds the outcome to the summary of the workflow's step, where GitHub asks for one."""
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    if file:
        with Path(file).open("a", encoding="utf-8") as summary:
            summary.write("\n".join(_summarize(fit)) + "\n")


def _summarize(fit: WorkloadsFit) -> Iterator[str]:
    """Yields lines of Markdown."""
    yield f"### {_headline(fit)}\n"
    notes = (
        [] if fit.drain is None else [*describe_refusals(fit.drain), *describe_delays(fit.drain)]
    )
    notes += [_describe_waiting(fit)] if fit.waited else []
    notes += [f"not understood: {each.text}" for each in fit.unknown]
    yield from (f"- {_mark(text)}" for text in notes)
    names = NodeNames(())
    if fit.workloads:
        yield "\n| Workload | Pods | Fit | On |\n|---|---:|---:|---|"
    for each in fit.workloads:
        cells = (each.workload, str(each.asked), str(each.placed), _nodes(each, names))
        yield f"| {' | '.join(map(_mark, cells))} |"
    for each in left_over(fit):
        yield f"\n**{_mark(each.workload)}**: {_describe_left(each)}\n"
        yield from (f"- {_mark(text)}" for text in _reasons(each))


def _mark(text: str) -> str:
    """Returns text as Markdown shows it."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", plain(text))


def _place(item: WorkloadFit | NotUnderstood) -> str:
    """Returns where it is written, for an annotation; nothing if that is no file."""
    if not Path(item.file).is_file():
        return ""
    return f"file={_escape_property(item.file)},{f'line={item.line},' if item.line else ''}"


def _escape_property(text: str) -> str:
    return _escape(plain(text)).replace(":", "%3A").replace(",", "%2C")


def _escape(text: str) -> str:
    # As GitHub's toolkit does.
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
