"""Prints the answer of `moorage fit`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from moorage.objects.resources import describe_amount

from .drain_text import drain_parts
from .explain_text import NodeNames, advice_lines
from .rendering import count, indent, line, shorten, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moorage.simulate.pod_fit import Comparison, Fit, Move
    from moorage.simulate.rescheduling import NodeResourceUse, Packing

# The nodes that take most pods come first; `-o json` prints the others too.
_MOST_ROWS = 10

_BARS = " ▁▂▃▄▅▆▇█"


def comparison_parts(comparison: Comparison) -> Iterator[RenderableType]:
    before, after = comparison.before, comparison.after
    rows = [
        (name, str(fit.node_count), str(fit.asked), str(fit.placed), str(fit.asked - fit.placed))
        for name, fit in (("as it is", before), ("what if", after))
    ]
    yield table(("", "NODES", "PODS", "PLACED", "LEFT"), rows, numbers_from=1)
    if comparison.changed:
        names = NodeNames(_nodes_of_moves(comparison.changed))
        yield line(f"(node names end in {names.ending})", "dim") if names.ending else ""
        moves = _moves(comparison.changed, names)
        yield from _first_rows(("POD", "AS IT IS", "WHAT IF"), moves)
    yield ""
    yield from fit_parts(after)


def fit_parts(fit: Fit) -> Iterator[RenderableType]:
    used = f"{len(fit.nodes):,} of {count(fit.node_count, 'node')}"
    fits = f"{fit.placed:,} of {count(fit.asked, 'pod')} fit{'s' * (fit.asked == 1)}"
    yield line(f"{fits}, on {used}")
    yield from drain_parts(fit.drain)
    names = NodeNames(_node_names(fit))
    if names.ending:
        yield line(f"(node names end in {names.ending})", "dim")
    moves = _moves(fit.moves, names)
    if moves:
        yield ""
        yield from _first_rows(("POD", "FROM", "TO"), moves)
    if fit.nodes and fit.asked > len(moves):
        yield ""
        nodes = [(names.shorten(each.node), str(each.count)) for each in fit.nodes]
        yield from _first_rows(("NODE", "PODS"), nodes, numbers_from=1)
    yield from _kinds(fit)
    if fit.runs_out:
        yield ""
        out = [
            (_describe_end(each.reasons), str(each.count), names.shorten(shorten(each.nodes)))
            for each in fit.runs_out
        ]
        yield table(("TAKE NO MORE BECAUSE", "NODES", "SUCH AS"), out)
    yield from _show_left(fit, names)


def _describe_end(reasons: Sequence[str]) -> str:
    """Returns why nodes that took such pods take no more."""
    lacking = [each.removeprefix("Insufficient ") for each in reasons]
    if any(lack == each for lack, each in zip(lacking, reasons, strict=True)):
        return ", ".join(reasons)
    return f"{' and '.join(lacking)} run{'s' * (len(lacking) == 1)} out"


def _node_names(fit: Fit) -> Iterator[str]:
    yield from (each.node for each in fit.nodes)
    yield from (each.node for each in fit.freed)
    yield from _nodes_of_moves(fit.moves)
    for each in fit.runs_out:
        yield from each.nodes


def _nodes_of_moves(moves: Iterable[Move]) -> Iterator[str]:
    yield from (name for each in moves for name in (each.before, each.after) if name)


def _moves(moves: Iterable[Move], names: NodeNames) -> list[tuple[str, str, str]]:
    return [
        (each.pod, names.shorten(each.before or "-"), names.shorten(each.after or "-"))
        for each in moves
    ]


def _kinds(fit: Fit) -> Iterator[RenderableType]:
    """Shows the nodes by kind, if there are too many to list."""
    if len(fit.nodes) > _MOST_ROWS:
        rows = [
            (each.kind, str(each.node_count), str(each.used), str(each.count)) for each in fit.kinds
        ]
        yield ""
        yield from _first_rows(("KIND OF NODE", "NODES", "USED", "PODS"), rows, numbers_from=1)


def _show_left(fit: Fit, names: NodeNames) -> Iterator[RenderableType]:
    for each in fit.left:
        yield ""
        yield line(f"{count(each.count, 'pod')} left: {each.message}")
        yield indent(line(shorten(each.pods)))
        if fit.why is not None and fit.why.pod in each.pods:
            yield from (indent(line(text)) for text in advice_lines(fit.why, 1, fit.why.pod))
    yield from _show_freed(fit, names)


def _show_freed(fit: Fit, names: NodeNames) -> Iterator[RenderableType]:
    """Yields the evictions that would free nodes."""
    if fit.freed:
        pods = sum(len(each.pods) for each in fit.freed)
        yield ""
        yield line(f"Evicting {count(pods, 'pod')} would free {count(len(fit.freed), 'node')}:")
        rows = [
            (names.shorten(each.node), str(len(each.pods)), shorten(each.pods))
            for each in fit.freed
        ]
        yield from _first_rows(("NODE", "PODS", "EVICT"), rows)


def _first_rows(
    headers: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int | None = None
) -> Iterator[RenderableType]:
    yield table(headers, rows[:_MOST_ROWS], numbers_from)
    if len(rows) > _MOST_ROWS:
        yield line(f"and {len(rows) - _MOST_ROWS} more, see -o json")


def packing_parts(packings: Sequence[Packing]) -> Iterator[RenderableType]:
    """Yields configurations side by side: how full nodes are, what is left, and what that takes."""
    rows = [
        ("pods without a node", *(str(each.left) for each in packings)),
        ("nodes in use", *(f"{each.nodes_in_use} of {each.nodes}" for each in packings)),
        ("nodes that could go", *(str(each.empty_nodes) for each in packings)),
    ]
    for at, resource in enumerate(packings[0].resources):
        uses = [each.resources[at] for each in packings]
        name = resource.resource
        rows += [
            (f"{name} used", *(_share(each) for each in uses)),
            (f"{name}, nodes by use 0-100%", *(_histogram(each) for each in uses)),
            (
                f"{name}, largest pod that fits",
                *(describe_amount(name, each.largest_free) for each in uses),
            ),
            (f"{name} free where no usual pod fits", *(f"{each.fragmented}%" for each in uses)),
        ]
    rows += [
        ("pods that move", *(str(each.moves) for each in packings)),
        ("budgets exceeded at once", *(_name_exceeded(each) for each in packings)),
    ]
    yield table(("", *(each.name for each in packings)), rows)


def _share(use: NodeResourceUse) -> str:
    return f"{100 * use.used // max(use.allocatable, 1)}%"


def _histogram(use: NodeResourceUse) -> str:
    most = max(*use.histogram, 1)
    return "".join(_BARS[-(-count * (len(_BARS) - 1) // most)] for count in use.histogram).replace(
        " ", "·"
    )


def _name_exceeded(packing: Packing) -> str:
    names = [each.budget for each in packing.budgets if each.is_exceeded]
    return shorten(names, 2) or "-"
