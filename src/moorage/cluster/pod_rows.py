"""Counts pods in the rows of their nodes."""

from __future__ import annotations

from moorage.objects.pod import Pod

from .nodes import Nodes
from .state import State
from .usage import count_requests


def attach_pod(nodes: Nodes, state: State, pod: Pod, row: int, kinds: int) -> None:
    """Puts a pod on a row; `kinds` is its `pod_change`."""
    state.pods[row][pod.uid] = pod
    _count(nodes, state, pod, row, 1, kinds)
    if state.extended.is_used:
        state.extended.add_pod(pod, row)
    if state.pod_table is not None:
        state.pod_table.add(pod, row)


def detach_pod(nodes: Nodes, state: State, pod: Pod, row: int, kinds: int) -> None:
    """Removes a pod from a row; it is still known."""
    if state.extended.is_used:
        state.extended.remove_pod(pod, row)
    del state.pods[row][pod.uid]
    _count(nodes, state, pod, row, -1, kinds)
    if state.pod_table is not None:
        state.pod_table.remove(pod)


def replace_pod(state: State, known: Pod, pod: Pod, row: int) -> None:
    """Takes in a newer form of a pod that counts for the same."""
    state.pods[row][pod.uid] = pod
    if state.extended.is_used:
        state.extended.replace_pod(known, pod, row)
    if state.pod_table is not None:
        state.pod_table.replace(pod)


def _count(nodes: Nodes, state: State, pod: Pod, row: int, amount: int, kinds: int) -> None:
    columns, held = state.columns, pod.held
    count_requests(columns, state.facts.get(row) or nodes.facts(row), held, amount)
    if pod.spec.host_ports:
        state.ports.count(pod.spec.host_ports, row, amount, columns.capacity)
    if pod.spec.volumes:
        state.volume_use.count(pod, row, amount)
    if pod.spec.affinity is not None:
        state.standing.count(pod, row, amount, nodes.label)
    columns.coexisting.count(pod, row, amount, kinds)
    if state.tallies.are_there:
        state.tallies.count(pod, row, amount)
