"""Traces what plugins read of pods, so that these can be signed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import suppress

from moorage.cluster import Nodes
from moorage.cluster.view import see
from moorage.framework.plugin import NodeFilter, NodeScore, Plugin, find_pod_reads
from moorage.framework.profile import Profile
from moorage.objects.pod import Pod


def trace_reads(profile: Profile, nodes: Nodes, pods: Iterable[Pod]) -> None:
    """Asks plugins that are signed by what they read, as if each pod were decided.

    A pod that is signed like an earlier one is skipped: the plugin would read the same of it.
    """
    plugins = dict.fromkeys((*profile.filter, *(plugin for plugin, _ in profile.score)))
    found = ((plugin, find_pod_reads(plugin)) for plugin in plugins)
    traced = [(plugin, reads) for plugin, reads in found if reads is not None]
    asked: set[tuple[str, Hashable]] = set()
    for pod in pods if traced else ():
        for plugin, reads in traced:
            # What the plugin raises, and a signature that cannot be compared, are reported later.
            with suppress(Exception):
                if (plugin.name, reads.sign(pod)) not in asked:
                    _ask(plugin, pod, nodes)
                    asked.add((plugin.name, reads.sign(pod)))


def _ask(plugin: Plugin, pod: Pod, nodes: Nodes) -> None:
    if isinstance(plugin, NodeFilter):
        plugin.filter(pod, see(plugin, nodes), nodes.rows)
    if isinstance(plugin, NodeScore):
        plugin.score(pod, see(plugin, nodes), nodes.rows)
