"""Plugins that see for each pod no more than `watch` says: reading beyond that raises.

Where a scheduler runs, a plugin sees what it declares in `reads`, for whichever pod.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, cast

from moorage.cluster import Change, NodeView, UndeclaredFact, View
from moorage.cluster.view import see_less, see_row
from moorage.framework.plugin import (
    Filter,
    Narrowed,
    NodeFilter,
    NodeScore,
    Plugin,
    PreFilter,
    PreScore,
    Registry,
    Score,
    Sign,
)
from moorage.framework.status import Rejected
from moorage.objects.pod import Pod

# The points that get a pod, those that get what was prepared for one, and where these are defined.
_BY_POD = {"pre_filter": PreFilter, "pre_score": PreScore}
_BY_PREPARED = {
    **dict.fromkeys(("add_pod", "remove_pod"), PreFilter),
    **dict.fromkeys(("filter", "recheck"), Filter),
    **dict.fromkeys(("score", "rescore"), Score),
}
_BY_NODE = {"filter_node": NodeFilter, "score_node": NodeScore}

# Beyond so many prepared values, the older ones are forgotten: then `reads` is the limit.
_MOST_KNOWN = 4_096


class Declarations:
    """Makes plugins see only what they watch, and notes what they would have read besides."""

    def __init__(self) -> None:
        #: What plugins have read without declaring it: an engine catches what they raise.
        self.undeclared: list[str] = []

    def registry(self, registry: Registry) -> Registry:
        """Returns the same plugins, which see only what they watch."""
        return {name: self.limit(kind) for name, kind in registry.items()}

    def limited(self, plugin: Plugin) -> Any:
        """Returns a copy of a plugin that sees only what it watches."""
        limited = copy(plugin)
        limited.__class__ = self.limit(type(plugin))
        return limited

    def limit(self, kind: type[Plugin]) -> type[Plugin]:
        """Returns a plugin class whose points see only what it watches."""
        return cast(type[Plugin], type(kind.__name__, (kind,), _Limits(kind, self).methods()))

    def check(self) -> None:
        """Raises UndeclaredFact if a plugin has read what it does not declare."""
        if self.undeclared:
            raise UndeclaredFact("; ".join(dict.fromkeys(self.undeclared)))


class _Limits:
    """The points of one plugin class, which get a view of what it watches."""

    def __init__(self, kind: type[Plugin], declarations: Declarations) -> None:
        self._kind, self._undeclared = kind, declarations.undeclared
        #: What the plugin watches for the pods that values were prepared for.
        self._watched: dict[int, tuple[Any, Change]] = {}

    def methods(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "__slots__": (),
            "__module__": self._kind.__module__,
            "__doc__": self._kind.__doc__,
        }
        for names, limit in (
            (_BY_POD, self._by_pod),
            (_BY_PREPARED, self._by_prepared),
            (_BY_NODE, self._by_node),
        ):
            for name, base in names.items():
                if self._defines(name, base):
                    made[name] = limit(name, self._noting(getattr(self._kind, name)))
        if self._defines("watch", Plugin):
            made["watch"] = self._watch(self._noting(self._kind.watch))
        return made

    def _defines(self, name: str, base: type[Plugin]) -> bool:
        """Whether the plugin has a method of its own, and not that of the framework."""
        own = getattr(self._kind, name, None)
        plain = (base, Plugin, NodeFilter, NodeScore)
        return own is not None and all(own is not getattr(each, name, None) for each in plain)

    def _noting(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*arguments: Any) -> Any:
            try:
                return ask(*arguments)
            except UndeclaredFact as error:
                self._undeclared.append(str(error))
                raise

        return noting

    def _by_pod(self, name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        def limited(plugin: Any, pod: Pod, view: View, *more: Any) -> Any:
            watched = plugin.watch(pod, view)
            prepared = ask(plugin, pod, see_less(plugin, view, watched | _signed(plugin)), *more)
            self._note(prepared.prepared if isinstance(prepared, Narrowed) else prepared, watched)
            return prepared

        return limited

    def _by_prepared(self, name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        def limited(plugin: Any, prepared: Any, view: View, *more: Any) -> Any:
            watched = self._find_watched(plugin, prepared, view)
            seen = see_less(plugin, view, watched)
            if name in ("recheck", "rescore"):
                more = (see_row(seen, more[0]), *more[1:])
            answer = ask(plugin, prepared, seen, *more)
            if name in ("add_pod", "remove_pod"):
                self._note(answer, watched)
            return answer

        return limited

    def _by_node(self, name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        def limited(plugin: Any, pod: Pod, node: NodeView) -> Any:
            seen = see_less(plugin, node._nodes, plugin.watch(pod, node._nodes))
            return ask(plugin, pod, NodeView(seen, node.row))

        return limited

    def _watch(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def limited(plugin: Any, pod: Pod, view: View) -> Any:
            return ask(plugin, pod, see_less(plugin, view, plugin.reads | _signed(plugin)))

        return limited

    def _note(self, prepared: Any, watched: Change) -> None:
        """Notes for whom a value was prepared; one of several pods may be read for all of them."""
        if prepared is None or isinstance(prepared, Rejected):
            return
        if len(self._watched) >= _MOST_KNOWN:
            self._watched.clear()
        _, known = self._watched.get(id(prepared), (None, Change.NONE))
        # It is kept, so that no other value gets its id.
        self._watched[id(prepared)] = prepared, known | watched

    def _find_watched(self, plugin: Any, prepared: Any, view: View) -> Change:
        if isinstance(prepared, Pod):
            return cast(Change, plugin.watch(prepared, view))
        return self._watched.get(id(prepared), (None, plugin.reads))[1]


def _signed(plugin: Plugin) -> Change:
    """Returns what is equal for all pods that a plugin signs alike: it need not watch that."""
    # A pod's own claims, its services and its controller.
    shared = Change.CLAIMS | Change.SERVICES
    return shared & plugin.reads if isinstance(plugin, Sign) else Change.NONE
