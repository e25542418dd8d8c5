"""A cluster in a few lines, as text and as HTML for notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.resources import PODS, describe_amount

from .tables import add_up, html_table, phase_of

# Notes beyond these are counted.
_MOST_NOTES = 5


def describe(nodes: Sequence[Node], pods: Sequence[Pod]) -> str:
    """Returns how many nodes and pods there are."""
    placed = sum(1 for pod in pods if pod.node_name)
    return f"{_count(nodes, 'node')}, {_count(pods, 'pod')}, {placed:,} of them on nodes"


def summarize_html(
    nodes: Sequence[Node], pods: Sequence[Pod], version: str, notes: Sequence[str]
) -> str:
    """Returns nodes, pods by phase, and what of each resource is requested."""
    phases = Counter(map(phase_of, pods))
    cordoned = sum(1 for node in nodes if node.unschedulable)
    parts = [
        f"{_count(nodes, 'node')}{f' ({cordoned:,} cordoned)' if cordoned else ''}",
        _count(pods, "pod"),
        *(f"{number:,} {phase}" for phase, number in phases.most_common()),
    ]
    text = f"<p><b>{escape(', '.join(parts))}</b>; decides as kube-scheduler {escape(version)}</p>"
    rows = _use_rows(nodes, [pod for pod in pods if pod.node_name and not pod.is_finished])
    table = html_table(("resource", "allocatable", "requested", "share"), rows)
    return text + table + "".join(f"<p>{escape(each)}</p>" for each in _cut(notes))


def _use_rows(nodes: Iterable[Node], running: Sequence[Pod]) -> Iterator[tuple[str, ...]]:
    whole = add_up(node.allocatable for node in nodes)
    used = add_up(pod.held.requests for pod in running) | {PODS: len(running)}
    for name, amount in whole.items():
        requested = used.get(name, 0)
        if amount or requested:
            share = f"{100 * requested // amount}%" if amount else ""
            yield name, describe_amount(name, amount), describe_amount(name, requested), share


def _cut(notes: Sequence[str]) -> Iterator[str]:
    yield from notes[:_MOST_NOTES]
    if len(notes) > _MOST_NOTES:
        yield f"{len(notes) - _MOST_NOTES} more notes"


def _count(items: Sequence[object], noun: str) -> str:
    return f"{len(items):,} {noun}{'s' * (len(items) != 1)}"
