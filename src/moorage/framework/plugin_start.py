"""Calls of plugins when a scheduler starts: each is made, checked and told what it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.cluster import Change, HandleRegistry, Nodes, Scope
from moorage.cluster.view import see
from moorage.config import FeatureGates
from moorage.documents.errors import STOPPED, ConfigError

from .plugin import (
    PendingPermits,
    Permit,
    Plugin,
    Reduction,
    Score,
)
from .plugin_fence import PluginFence, expect, make_error, name_kinds
from .series import Counts, Histogram
from .status import PluginError
from .wakeups import Action, ClusterEvent, Wakeup


def create(kind: type[Plugin], args: Any, gates: FeatureGates, handles: HandleRegistry) -> Plugin:
    """Makes a plugin for a profile. A mistake in its class is an error at the start."""
    try:
        plugin = kind.create_sharing(args, gates, handles)
        _check_plugin(plugin, kind)
        return plugin
    except ConfigError:
        raise
    except STOPPED as error:
        raise make_error(f'creating plugin "{kind.name}"', error, kind.name) from error


def _check_plugin(plugin: Plugin, kind: type[Plugin]) -> None:
    expect(plugin, kind)
    metrics = plugin.metrics()
    expect(metrics, tuple)
    for each in metrics:
        expect(each, Counts, Histogram)
    if isinstance(plugin, Score):
        _check_score(type(plugin))
    # Profiles keep plugins in dictionaries.
    hash(plugin)
    for attribute, wanted in _ATTRIBUTES.items():
        value = getattr(plugin, attribute, None)
        if hasattr(plugin, attribute) and not isinstance(value, wanted):
            raise PluginError(f"{attribute} is {value!r}, expected {name_kinds(wanted)}")


def _check_score(kind: type[Score[Any]]) -> None:
    """Raises unless a plugin that normalises its numbers says what it looks at to do so."""
    if kind.normalize is Score.normalize:
        return
    if not any("reduces" in vars(each) for each in kind.__mro__ if each is not Score):
        raise PluginError(
            "normalizes its scores and does not declare what they are relative to: "
            "`reduces = Reduction.LARGEST` to the largest of them, as `normalize_scores` does, "
            "`Reduction.EVERYTHING` to all of them, `Reduction.NOTHING` each to itself"
        )


#: What a plugin says of itself, and the type of it.
_ATTRIBUTES: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "reads": Change,
    "writes": Change,
    "scope": Scope,
    "reduces": Reduction,
}


def ask_wakeups(plugin: Plugin) -> tuple[Wakeup, ...]:
    """Returns the events that the plugin registers for."""
    with PluginFence('asking plugin "{}" for its wakeups', plugin):
        answer = plugin.wakeups()
        expect(answer, tuple)
        for each in answer:
            expect(each, Wakeup)
            expect(each.event, ClusterEvent)
            expect(each.event.resource, str)
            expect(each.event.action, Action)
            if each.hint is not None and not callable(each.hint):
                raise PluginError(f"a hint is {type(each.hint).__name__}, expected a function")
        return answer


def show_cluster(plugin: Plugin, nodes: Nodes) -> None:
    """Passes the cluster to a plugin when the scheduler starts."""
    with PluginFence('showing plugin "{}" the cluster', plugin):
        for ledger in plugin.ledgers:
            nodes.ledger(ledger)
        plugin.see_cluster(see(plugin, nodes))


def ask_remarks(plugin: Plugin) -> tuple[str, ...]:
    """Returns a plugin's remarks about its arguments."""
    with PluginFence('asking plugin "{}" for its remarks', plugin):
        answer = plugin.remarks()
        expect(answer, tuple)
        for each in answer:
            expect(each, str)
        return answer


def attach(plugin: Permit, waiting: PendingPermits) -> None:
    """Passes a plugin the pods that wait for its permit, when the scheduler starts."""
    with PluginFence('attaching Permit plugin "{}"', plugin):
        plugin.attach(waiting)
