"""`moorage fit -f` with workloads: which do not fit, why, and what would help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent as indent_xml, tostring

import typer

from moorage.simulate.loading import Additions, Input, load_additions
from moorage.simulate.workload_fit import WorkloadFit, WorkloadsFit, fit_workloads, left_over

from .explain_text import NodeNames
from .rendering import count, indent, line, note, plain, print_data, render, shorten, table

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
    return [each.kind for each in additions.workloads] == ["Pod"]


# Beside a longer name a table has no room for all of its columns.
_LONGEST_NAME = 36


def place_workloads(
    engine: Engine, scene: Scene, additions: Additions, output: str, fail_on: str
) -> None:
    """Places workloads and prints the outcome; exits with 1 if one does not fit."""
    found = fit_workloads(engine, scene, additions.workloads, additions.objects)
    if output == "junit":
        print(write_junit(found))
    elif output == "github":
        for text in write_annotations(found):
            print(text)
    elif not print_data(found, output):
        print(render(_parts(found)))
    if any(left_over(found)) or (fail_on == "any" and found.still_waiting):
        raise typer.Exit(_LEFT)


def _parts(fit: WorkloadsFit) -> Iterator[RenderableType]:
    left = list(left_over(fit))
    nodes, workloads = count(fit.node_count, "node"), count(len(fit.workloads), "workload")
    if left:
        do = "does" if len(left) == 1 else "do"
        yield line(f"{len(left)} of {workloads} {do} not fit on {nodes}", "bold red")
    else:
        yield line(f"{workloads} fit{'s' * (len(fit.workloads) == 1)} on {nodes}", "bold green")
    if fit.waited:
        find = "finds" if len(fit.still_waiting) == 1 else "find"
        text = f"{count(fit.waited, 'pod')} waited before; {len(fit.still_waiting)} of them"
        yield line(f"{text} {find} no node", "dim")
    names = NodeNames(node.node for each in fit.workloads for node in each.nodes)
    if names.ending:
        yield line(f"(node names end in {names.ending})", "dim")
    yield ""
    yield from _list_workloads(fit, names)
    for each in left:
        yield ""
        yield line(
            f"{each.workload}: {each.asked - each.placed} of {each.asked} pods find no node", "bold"
        )
        yield from (indent(line(text)) for text in _reasons(each))


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
        replaced = f"; {each.replaced} are replaced" if each.replaced else ""
        text = f"{each.placed} of {each.asked} pods fit{on}{replaced}"
        yield indent(line(text, "green" if each.fits else "red"))


def _nodes(fit: WorkloadFit, names: NodeNames) -> str:
    return shorten([f"{names.shorten(each.node)} ({each.count})" for each in fit.nodes], 3) or "-"


def _reasons(fit: WorkloadFit) -> Iterator[str]:
    """Yields why pods of a workload find no node, and what would help."""
    yield fit.message
    if fit.stay:
        yield f"the rollout stops there: {fit.stay} pods of the older version stay"
    suggestions = fit.why.suggestions if fit.why is not None else ()
    for each in [each for each in suggestions if each.effect == "fits"][:2]:
        yield f"would fit {count(each.count, 'node')} if {each.remedy}"


def write_junit(fit: WorkloadsFit) -> str:
    """Returns a test suite with one test per workload, for CI servers that read JUnit's XML."""
    failures = list(left_over(fit))
    suite = Element(
        "testsuite", name="moorage fit", tests=str(len(fit.workloads)), failures=str(len(failures))
    )
    for each in fit.workloads:
        case = SubElement(suite, "testcase", classname="moorage.fit", name=plain(each.workload))
        if not each.fits:
            text = f"{each.asked - each.placed} of {each.asked} pods find no node"
            reasons = "\n".join(map(plain, _reasons(each)))
            SubElement(case, "failure", message=text).text = reasons
    indent_xml(suite)
    return tostring(suite, encoding="unicode", xml_declaration=True)


def write_annotations(fit: WorkloadsFit) -> Iterator[str]:
    """Returns workflow commands that GitHub shows as annotations, beside the file if known."""
    for each in fit.workloads:
        file = f"file={_escape_property(each.file)}," if Path(each.file).is_file() else ""
        about = f"{file}title={_escape_property(each.workload)}"
        if each.fits:
            yield f"::notice {about}::{each.placed} of {count(each.asked, 'pod')} fit"
        else:
            summary = f"{each.asked - each.placed} of {each.asked} pods find no node"
            text = "\n".join((summary, *map(plain, _reasons(each))))
            yield f"::error {about}::{_escape(text)}"


def _escape_property(text: str) -> str:
    return _escape(plain(text)).replace(":", "%3A").replace(",", "%2C")


def _escape(text: str) -> str:
    # As GitHub's toolkit does.
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
