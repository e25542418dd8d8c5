"""An explanation as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from mooring.engine.explain import (
    Explanation,
    NodeAnswer,
    NodeScore,
    QueueView,
    Rejection,
    Suggestion,
)
from mooring.framework.status import Code

from .rendering import line, rendered, table

# What helps most comes first; the rest is in the JSON.
_MOST_SUGGESTIONS = 8
_NAMES_SHOWN = 4


def shown(told: Explanation) -> str:
    """Everything that people want to see of an explanation."""
    return rendered(_parts(told))


def _parts(told: Explanation) -> Iterator[RenderableType]:
    yield line(_headline(told))
    if told.queue is not None:
        yield from _queued(told.queue, told.message)
    if told.node is not None:
        yield from _node(told.node)
    if told.message and told.state != "fits":
        yield line(told.message)
    if told.preemption is not None:
        victims = _names([each.pod for each in told.preemption.victims])
        yield line(f"it would fit node {told.preemption.node} once evicted: {victims}")
    if told.scores:
        yield ""
        yield _scores(told.scores)
    rejections = [*told.rejections, *([told.left_out] if told.left_out else ())]
    if rejections:
        yield ""
        rows = [
            (each.plugin, str(each.count), _because(each, rejections), _names(each.nodes))
            for each in rejections
        ]
        yield table(("REJECTED BY", "NODES", "BECAUSE", "SUCH AS"), rows)
    yield from _suggestions(told.suggestions, told.state)


def _because(rejection: Rejection, among: Sequence[Rejection]) -> str:
    """The reasons; where others have the same but may be helped by evicting, that these may not."""
    told = ", ".join(rejection.reasons)
    mine = rejection.plugin, rejection.reasons
    same = [each for each in among if (each.plugin, each.reasons) == mine]
    hopeless = rejection.code == Code.UNRESOLVABLE and len(same) > 1
    return f"{told}, even without other pods" if hopeless else told


def _headline(told: Explanation) -> str:
    nodes = f"{told.feasible_count} of {told.node_count} nodes take it"
    there = f" runs on {told.running_on};" if told.running_on else ""
    match told.state:
        case "fits" if told.running_on == told.chosen:
            return f"pod {told.pod} runs on {told.running_on}, and would again: {nodes}"
        case "fits":
            return f"pod {told.pod}{there} would go to {told.chosen}: {nodes}"
        case "pending" | "preempting":
            return f"pod {told.pod}{there} fits no node of {told.node_count}"
        case state:
            return f"pod {told.pod}{there} is not decided about: {state}"


def _queued(queue: QueueView, now: str) -> Iterator[RenderableType]:
    """What a scheduler at work is doing with the pod."""
    attempts = f"{queue.attempts} attempt{'s' * (queue.attempts != 1)}"
    if queue.assumed_on:
        yield line(f"it is on its way to {queue.assumed_on}, after {attempts}")
        for wait in queue.permits:
            yield line(f"    {wait.plugin} has {_seconds(wait.seconds)} to permit it")
        return
    until = f", for {_seconds(queue.backoff_seconds)} yet" if queue.backoff_seconds else ""
    yield line(f"in the queue: {queue.place}{until}, after {attempts}")
    if queue.nominated_node:
        yield line(f"    others are evicted for it on {queue.nominated_node}")
    if queue.message not in ("", now):
        yield line(f"    the last attempt: {queue.message}")


def _seconds(amount: float) -> str:
    return f"{amount:.1f} s"


def _node(answer: NodeAnswer) -> Iterator[RenderableType]:
    if answer.feasible and answer.score is not None:
        better = f"{answer.better} score better" if answer.better else "none scores better"
        yield line(f"node {answer.node} takes it, with {answer.score.total} points: {better}")
        return
    yield line(f"node {answer.node} does not take it:")
    for each in answer.refusals:
        yield line(f"    {each.plugin}: {', '.join(each.reasons)}")


def _scores(scores: Sequence[NodeScore]) -> RenderableType:
    plugins = list(dict.fromkeys(name for each in scores for name in each.by_plugin))
    # Where all score nothing, there is nothing to see.
    plugins = [name for name in plugins if any(each.by_plugin[name] for each in scores)]
    rows = [
        (each.node, str(each.total), *(str(each.by_plugin[name]) for name in plugins))
        for each in scores
    ]
    return table(("BEST NODES", "TOTAL", *plugins), rows, numbers_from=1)


def _suggestions(suggestions: Sequence[Suggestion], state: str) -> Iterator[RenderableType]:
    if not suggestions:
        return
    yield ""
    some = suggestions[:_MOST_SUGGESTIONS]
    rows = [(_effect(each), each.remedy, each.problem, *_blockers(each, some)) for each in some]
    fits = "WOULD ALSO FIT" if state == "fits" else "WOULD FIT"
    yield table((fits, "IF", "BECAUSE", "BLOCKED BY")[: len(rows[0])], rows)
    left = len(suggestions) - len(rows)
    if left:
        yield line(f"and {left} more, see -o json")


def _blockers(suggestion: Suggestion, among: Sequence[Suggestion]) -> tuple[str, ...]:
    """The pods in the way, if any suggestion has some."""
    if not any(each.blockers for each in among):
        return ()
    return (_names([pod.pod for pod in suggestion.blockers]),)


def _effect(suggestion: Suggestion) -> str:
    if suggestion.effect == "none":
        return "-"
    nodes = suggestion.nodes[0] if suggestion.count == 1 else f"{suggestion.count} nodes"
    return f"{nodes}, evicting" if suggestion.effect == "evicts" else nodes


def _names(names: Sequence[str]) -> str:
    told = ", ".join(names[:_NAMES_SHOWN])
    left = len(names) - _NAMES_SHOWN
    return f"{told} and {left} more" if left > 0 else told
