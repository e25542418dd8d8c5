"""Doing what a suggestion says, to a real cluster, and looking again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from moorage.engine import Engine
from moorage.engine.cycle import conclude, find_feasible
from moorage.engine.explain import Suggestion
from moorage.framework.attempt import Failed
from moorage.framework.edits import EvictPods, RecoverNodes, SetScheduler, Uncordon, apply_edits
from moorage.framework.points import pre_filter
from moorage.objects.node import Node
from moorage.objects.placement_rules import CORDONED
from moorage.objects.pod import Pod
from moorage.plugins.preemption.default_preemption import DefaultPreemption


def feasible(engine: Engine, pod: Pod) -> set[str]:
    """The nodes that take a pod as things are."""
    profile, nodes = engine.profiles[pod.spec.scheduler_name], engine.cluster.nodes
    prepared = pre_filter(profile, pod, nodes)
    if prepared.rejected is not None:
        return set()
    found = find_feasible(profile, pod, prepared, nodes)
    return set(nodes.names(found.feasible_rows.tolist()))


def evicting(engine: Engine, pod: Pod) -> set[str]:
    """The nodes that take a pod once others are evicted for it."""
    profile, nodes = engine.profiles[pod.spec.scheduler_name], engine.cluster.nodes
    failed = conclude(profile, pod, pre_filter(profile, pod, nodes), nodes)
    assert isinstance(failed, Failed)
    assert pod.spec.preemption_policy != "Never"
    plugin = next(each for each in profile.post_filter if isinstance(each, DefaultPreemption))
    found = plugin.candidates(pod, failed, nodes, profile, Counter())
    return set(nodes.names(found.rows.tolist()))


@contextmanager
def applied(engine: Engine, suggestion: Suggestion) -> Iterator[None]:
    """The cluster with a suggestion's part about it made true. Pods that are evicted stay away."""
    cluster = engine.cluster
    before = []
    for edit in suggestion.edits:
        if isinstance(edit, Uncordon | RecoverNodes):
            for name in edit.nodes:
                row = cluster.nodes.row(name)
                assert row is not None
                before.append(cluster.nodes.node(row))
                cluster.put_node(_mended(before[-1], edit))
        elif isinstance(edit, EvictPods):
            for gone in edit.pods:
                placed = cluster.pod(gone.uid)
                assert placed is not None
                assert (placed.key, placed.node_name) == (gone.pod, gone.node)
                cluster.remove_pod(gone.uid)
    yield
    # From the last on: a node may have been changed twice.
    for node in reversed(before):
        cluster.put_node(node)


def _mended(node: Node, edit: Uncordon | RecoverNodes) -> Node:
    if isinstance(edit, Uncordon):
        taints = tuple(each for each in node.taints if each.key != CORDONED.key)
        return msgspec.structs.replace(node, unschedulable=False, taints=taints)
    lost = edit.key, edit.value, edit.effect
    taints = tuple(each for each in node.taints if (each.key, each.value, each.effect) != lost)
    assert taints != node.taints
    return msgspec.structs.replace(node, taints=taints)


def evicts(suggestion: Suggestion) -> bool:
    return any(isinstance(edit, EvictPods) for edit in suggestion.edits)


def assert_holds(engine: Engine, pod: Pod, suggestion: Suggestion) -> None:
    """With its edits made, the nodes that a suggestion names take the pod, and did not before."""
    promised = set(suggestion.nodes)
    assert len(promised) == suggestion.count == len(suggestion.nodes)
    if suggestion.effect == "none":
        assert not suggestion.nodes
        return
    assert promised
    is_served = not any(isinstance(edit, SetScheduler) for edit in suggestion.edits)
    if is_served and not pod.spec.scheduling_gates:
        assert not promised & feasible(engine, pod)
    look = evicting if suggestion.effect == "evicts" else feasible
    with applied(engine, suggestion):
        assert promised <= look(engine, apply_edits(pod, suggestion.edits))
