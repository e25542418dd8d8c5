"""Plugins that can read no more than they declare: what they read beyond `watch` raises."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, cast

from moorage.cluster import Change, Nodes, NodeView
from moorage.framework.plugin import (
    UNSIGNABLE,
    Filter,
    Narrowed,
    NodeFilter,
    NodeScore,
    Plugin,
    PostFilter,
    Preempt,
    PreFilter,
    PreScore,
    Registry,
    Score,
    Sign,
)
from moorage.framework.status import Rejected
from moorage.objects.pod import Pod

from .facts import OWN_CLAIMS, SIBLINGS, DeclaredNodes, Eyes, UndeclaredFact, declare_row

# The points that get a pod, those that get what was prepared for one, and where these are defined.
_BY_POD = {"pre_filter": PreFilter, "pre_score": PreScore}
_BY_PREPARED = {
    **dict.fromkeys(("add_pod", "remove_pod"), PreFilter),
    **dict.fromkeys(("filter", "recheck", "sees"), Filter),
    **dict.fromkeys(("score", "find_levels", "rescore"), Score),
}
_BY_NODE = {"filter_node": NodeFilter, "score_node": NodeScore}

# Beyond so many prepared values, the older ones are forgotten: then `reads` is the limit.
_MOST_KNOWN = 4_096


class Declarations:
    """Makes plugins see only what they declare, and notes what they would have read besides."""

    def __init__(self) -> None:
        #: What plugins have read without declaring it.
        self.undeclared: list[str] = []

    def registry(self, registry: Registry) -> Registry:
        """Returns the same plugins, which see only what they declare."""
        return {name: self.limit(kind) for name, kind in registry.items()}

    def limited(self, plugin: Plugin) -> Any:
        """Returns a copy of a plugin that sees only what it declares."""
        limited = copy(plugin)
        limited.__class__ = self.limit(type(plugin))
        return limited

    def limit(self, kind: type[Plugin]) -> type[Plugin]:
        """Returns a plugin class whose points see only what it declares."""
        return cast(type[Plugin], type(kind.__name__, (kind,), _Limits(kind, self).methods()))

    def check(self) -> None:
        """Raises UndeclaredFact if a plugin has read what it does not declare."""
        if self.undeclared:
            raise UndeclaredFact("; ".join(dict.fromkeys(self.undeclared)))


class _Limits:
    """The points of one plugin class, with the nodes behind `DeclaredNodes`."""

    def __init__(self, kind: type[Plugin], declarations: Declarations) -> None:
        self._kind = kind
        self._eyes = Eyes(kind.name, kind.reads, declarations.undeclared)
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
                    made[name] = limit(name, getattr(self._kind, name))
        if self._defines("watch", Plugin):
            made["watch"] = self._watch(self._kind.watch)
        if issubclass(self._kind, PostFilter) and not issubclass(self._kind, Preempt):
            made["post_filter"] = self._post_filter(self._kind.post_filter)
        return made

    def _defines(self, name: str, base: type[Plugin]) -> bool:
        """Whether the plugin has a method of its own, and not that of the framework."""
        own = getattr(self._kind, name, None)
        plain = (base, Plugin, NodeFilter, NodeScore)
        return own is not None and all(own is not getattr(each, name, None) for each in plain)

    def _by_pod(self, name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        def limited(plugin: Any, pod: Pod, nodes: Nodes, *more: Any) -> Any:
            watched = plugin.watch(pod, nodes)
            seen = self._declare(nodes, watched, _find_signed(plugin))
            prepared = ask(plugin, pod, seen, *more)
            self._note(prepared.prepared if isinstance(prepared, Narrowed) else prepared, watched)
            return prepared

        return limited

    def _by_prepared(self, name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        def limited(plugin: Any, prepared: Any, nodes: Nodes, *more: Any) -> Any:
            watched = self._find_watched(plugin, prepared, nodes)
            seen = self._declare(nodes, watched)
            if name in ("recheck", "rescore"):
                more = (declare_row(more[0], seen._eyes), *more[1:])
            answer = ask(plugin, prepared, seen, *more)
            if name in ("add_pod", "remove_pod"):
                self._note(answer, watched)
            return answer

        return limited

    def _by_node(self, name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        def limited(plugin: Any, pod: Pod, node: NodeView) -> Any:
            seen = self._declare(node._nodes, plugin.watch(pod, node._nodes))
            return ask(plugin, pod, NodeView(cast(Nodes, seen), node.row))

        return limited

    def _watch(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def limited(plugin: Any, pod: Pod, nodes: Nodes) -> Any:
            return ask(plugin, pod, self._declare(nodes, plugin.reads, _find_signed(plugin)))

        return limited

    def _post_filter(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def limited(plugin: Any, pod: Pod, failed: Any, nodes: Nodes, profile: Any) -> Any:
            if isinstance(plugin, Sign) and plugin.sign(pod, nodes) is not UNSIGNABLE:
                # After a nomination, everyone is asked again about pods that fit nowhere.
                nodes = cast(Nodes, self._declare(nodes, plugin.reads | Change.NOMINATED))
            # Others are asked about every pod.
            return ask(plugin, pod, failed, nodes, profile)

        return limited

    def _declare(
        self, nodes: Nodes, kinds: Change, signed: frozenset[str] = frozenset()
    ) -> DeclaredNodes:
        declared: Any = nodes
        if type(declared) is DeclaredNodes:
            nodes = declared._nodes
        return DeclaredNodes(nodes, replace(self._eyes, kinds=kinds, signed=signed))

    def _note(self, prepared: Any, watched: Change) -> None:
        """Notes for whom a value was prepared; one of several pods may be read for all of them."""
        if prepared is None or isinstance(prepared, Rejected):
            return
        if len(self._watched) >= _MOST_KNOWN:
            self._watched.clear()
        _, known = self._watched.get(id(prepared), (None, Change.NONE))
        # It is kept, so that no other value gets its id.
        self._watched[id(prepared)] = prepared, known | watched

    def _find_watched(self, plugin: Any, prepared: Any, nodes: Nodes) -> Change:
        if isinstance(prepared, Pod):
            return cast(Change, plugin.watch(prepared, nodes))
        return self._watched.get(id(prepared), (None, plugin.reads))[1]


def _find_signed(plugin: Plugin) -> frozenset[str]:
    """Returns the facts that are equal for all pods that a plugin signs alike."""
    if not isinstance(plugin, Sign):
        return frozenset()
    if plugin.signs is None:
        return frozenset((OWN_CLAIMS,))
    return frozenset((SIBLINGS,) if plugin.signs.siblings else ())
