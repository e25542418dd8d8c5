"""Counts pods in the rows of their nodes."""

from __future__ import annotations

from moorage.objects.pod import Pod

from .nodes import Nodes
from .state import State
from .usage import count_requests, template_change


def attach_pod(nodes: Nodes, state: State, pod: Pod, row: int) -> int:
    """Puts a pod on a row; returns the kinds of change there."""
    state.pods[row][pod.uid] = pod
    kinds = _count(nodes, state, pod, row, 1)
    if state.extended.is_used:
        state.extended.add_pod(pod, row)
    if state.pod_table is not None:
        state.pod_table.add(pod, row)
    return kinds


def detach_pod(nodes: Nodes, state: State, pod: Pod, row: int) -> int:
    """Removes a pod from a row; it is still known. Returns the kinds of change there."""
    if state.extended.is_used:
        state.extended.remove_pod(pod, row)
    del state.pods[row][pod.uid]
    kinds = _count(nodes, state, pod, row, -1)
    if state.pod_table is not None:
        state.pod_table.remove(pod)
    return kinds


def replace_pod(state: State, known: Pod, pod: Pod, row: int) -> None:
    """Takes in a newer form of a pod that counts for the same."""
    state.pods[row][pod.uid] = pod
    if state.extended.is_used:
        state.extended.replace_pod(known, pod, row)
    if state.pod_table is not None:
        state.pod_table.replace(pod)


def _count(nodes: Nodes, state: State, pod: Pod, row: int, amount: int) -> int:
    columns, held = state.columns, pod.held
    count_requests(columns, state.facts.get(row) or nodes.facts(row), held, amount)
    kinds = template_change(pod.spec) | columns.ledgers.count(pod, row, amount)
    if pod.spec.volumes:
        state.volume_use.count(pod, row, amount)
    if pod.spec.affinity is not None:
        state.standing.count(pod, row, amount, nodes.label)
    if state.tallies.are_there:
        state.tallies.count(pod, row, amount)
    return kinds
