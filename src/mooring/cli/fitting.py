"""The outcome of placing imagined pods as tables for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from mooring.engine.explain import Explanation
from mooring.engine.fit import Comparison, Fit

from .rendering import line, rendered, table

# The nodes that take most are told; the rest is in the JSON.
_MOST_ROWS = 10
_NAMES_SHOWN = 4


def shown(outcome: Fit | Comparison) -> str:
    """Everything that people want to see of an outcome."""
    return rendered(_compared(outcome) if isinstance(outcome, Comparison) else _parts(outcome))


def _compared(outcome: Comparison) -> Iterator[RenderableType]:
    before, after = outcome.before, outcome.after
    rows = [
        (name, str(fit.node_count), str(fit.asked), str(fit.placed), str(fit.asked - fit.placed))
        for name, fit in (("as it is", before), ("what if", after))
    ]
    yield table(("", "NODES", "PODS", "PLACED", "LEFT"), rows, numbers_from=1)
    if outcome.changed:
        yield ""
        moved = [(each.pod, each.before or "-", each.after or "-") for each in outcome.changed]
        yield table(("POD", "AS IT IS", "WHAT IF"), moved[:_MOST_ROWS])
        yield from _more(len(moved))
    yield ""
    yield from _parts(after)


def _parts(fit: Fit) -> Iterator[RenderableType]:
    yield line(
        f"{fit.placed} of {fit.asked} pods fit, on {len(fit.nodes)} of {fit.node_count} nodes"
    )
    moves = [(each.pod, each.before or "-", each.after or "-") for each in fit.moves]
    if moves:
        yield ""
        yield table(("POD", "FROM", "TO"), moves[:_MOST_ROWS])
        yield from _more(len(moves))
    if fit.nodes and fit.asked > len(moves):
        yield ""
        rows = [(each.node, str(each.count)) for each in fit.nodes]
        yield table(("NODE", "PODS"), rows[:_MOST_ROWS], numbers_from=1)
        yield from _more(len(rows))
    yield from _kinds(fit)
    if fit.runs_out:
        yield ""
        out = [
            (", ".join(each.reasons), str(each.count), _names(each.nodes)) for each in fit.runs_out
        ]
        yield table(("RUNS OUT", "NODES", "SUCH AS"), out)
    yield from _left(fit)


def _kinds(fit: Fit) -> Iterator[RenderableType]:
    """The nodes by kind, where there are too many to be told by name."""
    if len(fit.nodes) > _MOST_ROWS:
        rows = [
            (each.kind, str(each.node_count), str(each.used), str(each.count)) for each in fit.kinds
        ]
        yield ""
        yield table(("KIND OF NODE", "NODES", "USED", "PODS"), rows[:_MOST_ROWS], numbers_from=1)
        yield from _more(len(rows))


def _left(fit: Fit) -> Iterator[RenderableType]:
    for each in fit.left:
        yield ""
        yield line(f"{each.count} pod{'s' * (each.count > 1)} left: {each.message}")
        yield line(f"    {_names(each.pods)}")
        if fit.why is not None and fit.why.pod in each.pods:
            yield from _helpful(fit.why)


def _helpful(why: Explanation) -> Iterator[RenderableType]:
    # Nobody is evicted here.
    for suggestion in [each for each in why.suggestions if each.effect == "fits"][:1]:
        nodes = "1 node" if suggestion.count == 1 else f"{suggestion.count} nodes"
        yield line(f"    {why.pod} would fit {nodes} if {suggestion.remedy}")


def _more(count: int) -> Iterator[RenderableType]:
    if count > _MOST_ROWS:
        yield line(f"and {count - _MOST_ROWS} more, see -o json")


def _names(names: tuple[str, ...]) -> str:
    told = ", ".join(names[:_NAMES_SHOWN])
    left = len(names) - _NAMES_SHOWN
    return f"{told} and {left} more" if left > 0 else told
