"""A policy of our own: old nodes are only for pods that say they are legacy."""

from __future__ import annotations

from moorage.plugin import NodeFilter, NodeView, Pod

GENERATION = "example.com/generation"


class NewNodesOnly(NodeFilter):
    """Keeps pods off old nodes, unless they are labelled `legacy: "true"`."""

    name = "NewNodesOnly"

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        """Why the node does not suit, or None if it does."""
        if node.labels.get(GENERATION) == "old" and pod.labels.get("legacy") != "true":
            return "node(s) were too old"
        return None
