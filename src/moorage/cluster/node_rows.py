"""Writes nodes into their rows, and counts their pods there."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.resources import Amounts

from .changes import Change
from .labels import Vocabulary
from .nodes import Nodes
from .state import State
from .usage import count_requests, template_change

T = TypeVar("T", bound=Hashable)


def fill_row(state: State, row: int, node: Node) -> None:
    """Gives a free row to a node, without what it offers, which is set separately."""
    state.rows[node.name] = row
    state.nodes[row] = node
    columns = state.columns
    columns.alive[row] = True
    columns.unschedulable[row] = node.unschedulable
    columns.taint_sets[row] = state.taints.acquire(node.taints)
    columns.feature_sets[row] = state.features.acquire(node.declared_features)
    columns.resource_sets[row] = state.resource_names.acquire(node.resources)
    state.labels.set_row(row, {}, node.labels)
    state.images.put(row, node.images)
    state.order.add(row, node.zone)


def clear_row(state: State, row: int, node: Node) -> None:
    """Takes the row away from a node."""
    state.labels.set_row(row, node.labels, {})
    state.images.take(row, node.images)
    columns = state.columns
    state.taints.release(int(columns.taint_sets[row]))
    state.features.release(int(columns.feature_sets[row]))
    state.resource_names.release(int(columns.resource_sets[row]))
    columns.clear(row)
    state.order.remove(row)
    del state.rows[node.name]
    state.nodes[row] = None


def update_row(state: State, row: int, before: Node, node: Node) -> Change:
    """Writes a changed node; returns what changed, except labels and what it offers."""
    state.nodes[row] = node
    columns, kinds = state.columns, Change.NONE
    if node.unschedulable != before.unschedulable:
        columns.unschedulable[row] = node.unschedulable
        kinds |= Change.UNSCHEDULABLE
    if node.allocatable != before.allocatable:
        _swap_code(state.resource_names, columns.resource_sets, row, node.resources)
    if node.taints != before.taints:
        _swap_code(state.taints, columns.taint_sets, row, node.taints)
        kinds |= Change.TAINTS
    if node.declared_features != before.declared_features:
        _swap_code(state.features, columns.feature_sets, row, node.declared_features)
        kinds |= Change.FEATURES
    if node.images != before.images:
        state.images.take(row, before.images)
        state.images.put(row, node.images)
        kinds |= Change.IMAGES
    return kinds | _find_other_changes(before, node)


def _find_other_changes(before: Node, node: Node) -> Change:
    """Returns changes of fields that no column holds but plugins can read."""
    if node.uid != before.uid:
        # Another node of the same name.
        return Change.ALL
    kinds = Change.NONE
    if node.annotations != before.annotations:
        kinds |= Change.ANNOTATIONS
    if node.conditions != before.conditions:
        kinds |= Change.CONDITIONS
    return kinds


def set_allocatable(state: State, row: int, before: Amounts, after: Amounts) -> bool:
    """Notes what a node offers now; returns whether resources have moved to other positions."""
    columns = state.columns
    version = columns.version
    columns.offer(name for name, _ in after)
    columns.withdraw(name for name, _ in before)
    columns.allocatable[:, row] = 0
    for name, amount in after:
        columns.allocatable[columns.resources[name], row] = amount
    return columns.version != version


def withdraw_resources(state: State, before: Amounts) -> bool:
    """Notes that a node offers nothing any more; returns whether resources have moved."""
    version = state.columns.version
    state.columns.withdraw(name for name, _ in before)
    return state.columns.version != version


def _swap_code(vocabulary: Vocabulary[T], codes: NDArray[np.intp], row: int, value: T) -> None:
    before = int(codes[row])
    codes[row] = vocabulary.acquire(value)
    vocabulary.release(before)


def attach_pod(nodes: Nodes, state: State, pod: Pod, row: int) -> int:
    """Puts a pod on a row; returns the kinds of change there."""
    state.pods[row][pod.uid] = pod
    kinds = _count_pod(nodes, state, pod, row, 1)
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
    kinds = _count_pod(nodes, state, pod, row, -1)
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


def _count_pod(nodes: Nodes, state: State, pod: Pod, row: int, amount: int) -> int:
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
