"""Asking a plugin about a cluster, answers by node name."""

from __future__ import annotations

from typing import Any

import numpy as np

from moorage.cluster import Cluster
from moorage.framework.plugin import Filter, Narrowed, Plugin, PreFilter, PreScore, Score
from moorage.framework.status import Code, Rejected
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, ClusterEvent, Resource, Topics
from moorage.objects.pod import Pod

#: Node names with why they are rejected.
Rejections = dict[str, tuple[str, ...]]


def verdict(plugin: Filter[Any], pod: Pod, cluster: Cluster) -> Verdict | None:
    """The plugin's answer for all rows; None when it skips the pod."""
    prepared: Any = pod
    if isinstance(plugin, PreFilter):
        prepared = plugin.pre_filter(pod, cluster.nodes)
        assert not isinstance(prepared, Rejected)
        if isinstance(prepared, Narrowed):
            prepared = prepared.prepared
    if prepared is None:
        return None
    return plugin.filter(prepared, cluster.nodes, cluster.nodes.everything)


def rejections(plugin: Filter[Any], pod: Pod, cluster: Cluster) -> Rejections | None:
    """Which nodes the plugin rejects and why; None when it skips the pod."""
    answer = verdict(plugin, pod, cluster)
    if answer is None:
        return None
    rows = cluster.nodes.rows.tolist()
    return {cluster.nodes.name(row): answer.texts(row) for row in rows if answer.rejected[row]}


def codes(plugin: Filter[Any], pod: Pod, cluster: Cluster) -> dict[str, Code]:
    """What kind of no each rejected node gets."""
    answer = verdict(plugin, pod, cluster)
    assert answer is not None
    rows = cluster.nodes.rows.tolist()
    return {cluster.nodes.name(row): answer.code(row) for row in rows if answer.rejected[row]}


def scores(plugin: Score[Any], pod: Pod, cluster: Cluster) -> dict[str, int] | None:
    """The normalised scores of all nodes; None when the plugin skips the pod."""
    nodes = cluster.nodes
    prepared: Any = pod
    if isinstance(plugin, PreScore):
        prepared = plugin.pre_score(pod, nodes, nodes.rows)
        if prepared is None:
            return None
    raw = plugin.score(prepared, nodes, nodes.rows)
    np.testing.assert_array_equal(raw, plugin.score(prepared, nodes, nodes.everything)[nodes.rows])
    answer = plugin.normalize(prepared, raw)
    return dict(zip(nodes.names(nodes.rows.tolist()), answer.tolist(), strict=True))


def listens(plugin: Plugin) -> set[tuple[Resource | str, Action]]:
    """The events that the plugin asks to be told of."""
    return {(wakeup.event.resource, wakeup.event.action) for wakeup in plugin.wakeups()}


def wakes(
    plugin: Plugin,
    resource: Resource | str,
    action: Action,
    *,
    pod: Pod,
    old: Any = None,
    new: Any = None,
) -> bool:
    """Whether a pod that the plugin rejected is tried again after an event."""
    happened = ClusterEvent(resource, action)
    return any(
        wakeup.hint is None or wakeup.hint(pod, old, new)
        for wakeup in plugin.wakeups()
        if wakeup.event.hears(happened) and _shares_topic(wakeup.topics, pod, old, new)
    )


def _shares_topic(topics: Topics | None, pod: Pod, old: Any, new: Any) -> bool:
    """Whether the queue would ask the hint about the pod."""
    if topics is None or pod.uid in {getattr(each, "uid", None) for each in (old, new)}:
        return True
    named = topics.of_event(old, new)
    if named is None:
        return True
    named = set(named)
    waited_for = None if topics.of_pod is None else topics.of_pod(pod)
    return bool(named if waited_for is None else named & set(waited_for))
