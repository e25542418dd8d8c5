"""Stances: whether plugins skip, reject or narrow like pods as a whole."""

from __future__ import annotations

from enum import Enum, auto

import msgspec

from moorage.cluster import Nodes
from moorage.framework.calls import ask_pre_filter, ask_pre_score, ask_turns, ask_watch
from moorage.framework.plugin import Narrowed, Plugin, PreFilter, PreScore
from moorage.framework.status import Rejected
from moorage.objects.pod import Pod


class Point(Enum):
    """The point at which a plugin takes a stance."""

    #: A pre-filter without a filter.
    PRE_FILTER = auto()
    FILTER = auto()
    SCORE = auto()


class Stance(msgspec.Struct, frozen=True, eq=False):
    """A plugin's answer about such pods as a whole, and the changes that may alter it."""

    plugin: Plugin
    point: Point
    watch: int
    #: The changes after which the plugin may take another stance.
    turns_with: int
    skips: bool


class Stances:
    """The stances of a class's plugins that the cluster may change."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._stances: list[Stance] = []
        #: The changes after which some plugin is asked again.
        self.watch = 0

    def note(
        self, plugin: Plugin, pod: Pod, point: Point, watch: int, *, skips: bool = False
    ) -> None:
        """Notes the stance of a plugin towards pods like this one."""
        turns_with = ask_turns(plugin, pod, watch)
        if turns_with:
            self._stances.append(Stance(plugin, point, watch, turns_with, skips))
            self.watch |= turns_with

    def have_turned(self, pod: Pod, union: int) -> bool:
        """Whether a plugin takes another stance after such changes."""
        return any(
            each.turns_with & union and self._has_turned(each, pod) for each in self._stances
        )

    def _has_turned(self, stance: Stance, pod: Pod) -> bool:
        plugin, nodes = stance.plugin, self._nodes
        if ask_watch(plugin, pod, nodes) != stance.watch:
            return True
        if stance.point is Point.SCORE:
            if not isinstance(plugin, PreScore):
                return False
            return (ask_pre_score(plugin, pod, nodes, nodes.rows) is None) != stance.skips
        if not isinstance(plugin, PreFilter):
            return False
        answer = ask_pre_filter(plugin, pod, nodes)
        if isinstance(answer, Rejected | Narrowed):
            return True
        return stance.point is Point.FILTER and (answer is None) != stance.skips
