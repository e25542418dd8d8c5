"""Prints an explanation on a terminal of 80 columns or more, with names of any length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from .rendering import count, line, paragraph, shorten, table, terminal_width

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moorage.engine.explain import (
        Explanation,
        NodeAnswer,
        QueueView,
        Rejection,
        ScoredNode,
        Suggestion,
    )

# The suggestions that help most come first; `-o json` prints the others too.
_MOST_SUGGESTIONS = 5

_COLOURS = {"fits": "bold green", "preempting": "bold yellow", "pending": "bold red"}


class NodeNames:
    """Shortens node names: the ending that all of them share, from a dot on, is printed once."""

    def __init__(self, names: Iterable[str]) -> None:
        split = [name.split(".")[:0:-1] for name in set(names)]
        shared = takewhile(lambda parts: len(set(parts)) == 1, zip(*split, strict=False))
        parts = [each[0] for each in shared] if len(split) > 1 else []
        #: Empty where there is none.
        self.ending = "".join(f".{part}" for part in reversed(parts))

    def shorten(self, text: str) -> str:
        return text.replace(self.ending, "") if self.ending else text


def explanation_parts(explanation: Explanation) -> Iterator[RenderableType]:
    """Yields everything about one pod, from the answer to the details."""
    names = NodeNames(_node_names(explanation))
    yield line(names.shorten(explanation.headline), _COLOURS.get(explanation.state, "bold"))
    if names.ending:
        yield line(f"(node names end in {names.ending})", "dim")
    if explanation.queue is not None:
        yield from _queue(explanation.queue, explanation.message)
    if explanation.node is not None:
        yield from _node(explanation.node)
    if explanation.message and explanation.state != "fits":
        yield line(explanation.message)
    if explanation.scores:
        yield ""
        yield _scores(explanation.scores, names)
    left_out = [explanation.left_out] if explanation.left_out else []
    yield from _rejections([*explanation.rejections, *left_out], names)
    yield from suggestion_parts(explanation.suggestions, explanation.state, names)
    if explanation.preemption is not None:
        victims = shorten([each.pod for each in explanation.preemption.victims])
        node = names.shorten(explanation.preemption.node)
        yield ""
        yield line(f"it would fit node {node} once evicted: {victims}")


def _node_names(explanation: Explanation) -> Iterator[str]:
    for each in explanation.scores:
        yield each.node
    for rejection in explanation.rejections:
        yield from rejection.nodes
    for suggestion in explanation.suggestions:
        yield from suggestion.nodes


def _queue(queue: QueueView, message: str) -> Iterator[RenderableType]:
    """Shows what a running scheduler is doing with the pod."""
    attempts = f"{queue.attempts} attempt{'s' * (queue.attempts != 1)}"
    if queue.assumed_on:
        yield line(f"it is on its way to {queue.assumed_on}, after {attempts}")
        for wait in queue.permits:
            yield line(f"    {wait.plugin} has {wait.seconds:.1f} s to permit it")
        return
    until = f", for another {queue.backoff_seconds:.1f} s" if queue.backoff_seconds else ""
    yield line(f"in the queue: {queue.place}{until}, after {attempts}")
    if queue.nominated_node:
        yield line(f"    others are evicted for it on {queue.nominated_node}")
    if queue.message not in ("", message):
        yield line(f"    the last attempt: {queue.message}")


def _node(answer: NodeAnswer) -> Iterator[RenderableType]:
    if answer.feasible and answer.score is not None:
        better = f"{answer.better} score better" if answer.better else "none scores better"
        yield line(f"node {answer.node} takes it, with {answer.score.total} points: {better}")
        return
    yield line(f"node {answer.node} does not take it:")
    for each in answer.refusals:
        yield line(f"    {each.plugin}: {', '.join(each.reasons)}")


def _scores(scores: Sequence[ScoredNode], names: NodeNames) -> RenderableType:
    """Yields scores: a column per plugin if the terminal is wide enough, else a line per node."""
    plugins = list(dict.fromkeys(name for each in scores for name in each.by_plugin))
    # A plugin that gives every node 0 says nothing.
    plugins = [name for name in plugins if any(each.by_plugin[name] for each in scores)]
    rows = [
        (
            names.shorten(each.node),
            str(each.total),
            *(str(each.by_plugin[name]) for name in plugins),
        )
        for each in scores
    ]
    width = max(len(row[0]) for row in rows) + sum(3 + max(5, len(name)) for name in ["", *plugins])
    if width <= terminal_width():
        return table(("BEST NODES", "TOTAL", *plugins), rows, numbers_from=1)
    texts = [
        (
            row[0],
            row[1],
            ", ".join(f"{name} {points}" for name, points in zip(plugins, row[2:], strict=True)),
        )
        for row in rows
    ]
    return table(("BEST NODES", "TOTAL", "OF WHICH"), texts, whole=2)


def _rejections(rejections: Sequence[Rejection], names: NodeNames) -> Iterator[RenderableType]:
    if not rejections:
        return
    yield ""
    rows = [
        (
            each.plugin,
            str(each.count),
            _reason(each, rejections),
            shorten([names.shorten(node) for node in each.nodes]),
        )
        for each in rejections
    ]
    widths = [max(len(row[at]) for row in rows) + 3 for at in range(4)]
    if sum(widths) <= terminal_width():
        # Where all nodes are meant, none is named.
        shown = 4 if any(row[3] for row in rows) else 3
        headers = ("REJECTED BY", "NODES", "BECAUSE", "SUCH AS")[:shown]
        yield table(headers, [row[:shown] for row in rows])
        return
    pairs = [
        (plugin, count, paragraph(why, such and f"such as {such}"))
        for plugin, count, why, such in rows
    ]
    yield table(("REJECTED BY", "NODES", "BECAUSE"), pairs, whole=2)


def _reason(rejection: Rejection, rejections: Sequence[Rejection]) -> str:
    """Joins the reasons; marks two rejections that differ only in whether eviction helps."""
    from moorage.framework.status import Code

    text = ", ".join(rejection.reasons)
    mine = rejection.plugin, rejection.reasons
    same = [each for each in rejections if (each.plugin, each.reasons) == mine]
    hopeless = rejection.code == Code.UNRESOLVABLE and len(same) > 1
    return f"{text}, even without other pods" if hopeless else text


def suggestion_parts(
    suggestions: Sequence[Suggestion], state: str, names: NodeNames
) -> Iterator[RenderableType]:
    """Yields what would help: a line for the change and one for the reason."""
    if not suggestions:
        return
    yield ""
    first = suggestions[:_MOST_SUGGESTIONS]
    sentences = [each.problem for each in first if is_sentence(each)]
    yield from map(line, sentences)
    first = [each for each in first if not is_sentence(each)]
    if first:
        yield from [""] if sentences else []
        yield _suggestion_table(first, state, names)
    left = len(suggestions) - _MOST_SUGGESTIONS
    if left > 0:
        yield line(f"and {left} more, see -o json")


def advice_lines(explanation: Explanation, most: int, pod: str = "") -> Iterator[str]:
    """Yields what would help a pod, in a line each: what hurts others comes last."""
    fit = f"{pod} would fit".lstrip()
    for each in explanation.suggestions[:most]:
        if is_sentence(each) or not each.remedy:
            yield each.problem
        else:
            evicting = ", evicting others," if each.effect == "evicts" else ""
            yield f"{fit} {count(each.count, 'node')}{evicting} if {each.remedy}"
    if explanation.preemption is not None:
        victims = shorten([each.pod for each in explanation.preemption.victims])
        yield f"{fit} node {explanation.preemption.node} once evicted: {victims}"


def is_sentence(suggestion: Suggestion) -> bool:
    """Whether the suggestion is a whole sentence, because the nodes that it helps are not known."""
    return suggestion.effect == "none" and not suggestion.remedy


def _suggestion_table(
    suggestions: Sequence[Suggestion], state: str, names: NodeNames
) -> RenderableType:
    rows = [
        (_effect(each, names), paragraph(*map(names.shorten, _lines(each)))) for each in suggestions
    ]
    fits = "WOULD ALSO FIT" if state == "fits" else "WOULD FIT"
    return table((fits, "IF"), rows, whole=1)


def _lines(suggestion: Suggestion) -> Iterator[str]:
    if suggestion.remedy:
        yield suggestion.remedy
        yield f"because {suggestion.problem}"
    else:
        yield suggestion.problem
    if suggestion.blockers:
        yield f"in the way: {shorten([pod.pod for pod in suggestion.blockers])}"


def _effect(suggestion: Suggestion, names: NodeNames) -> str:
    if suggestion.effect == "none":
        return "-"
    nodes = (
        names.shorten(suggestion.nodes[0]) if suggestion.count == 1 else f"{suggestion.count} nodes"
    )
    return f"{nodes}, evicting" if suggestion.effect == "evicts" else nodes
