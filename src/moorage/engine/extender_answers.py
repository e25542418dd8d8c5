"""The answers of extenders, as far as decisions read them."""

from __future__ import annotations

import msgspec


class FilterAnswer(msgspec.Struct, frozen=True, tag_field="to", tag="filter", omit_defaults=True):
    """The nodes that suit the pod, and why others do not."""

    #: The names that were answered; None where there were none.
    node_names: tuple[str, ...] | None = None
    #: The names of the nodes that were answered as objects; None where there were none.
    nodes: tuple[str, ...] | None = None
    failed: dict[str, str] = {}
    #: Why evicting pods cannot help on a node.
    unresolvable: dict[str, str] = {}
    error: str = ""


class PrioritizeAnswer(
    msgspec.Struct, frozen=True, tag_field="to", tag="prioritize", omit_defaults=True
):
    """The extender's scores, by host."""

    hosts: tuple[str, ...] = ()
    scores: tuple[int, ...] = ()


class NodeVictims(msgspec.Struct, frozen=True, omit_defaults=True):
    """The pods that would be evicted from a node, by uid, and how many of them break a budget."""

    uids: tuple[str, ...] = ()
    violations: int = 0


class PreemptAnswer(msgspec.Struct, frozen=True, tag_field="to", tag="preempt", omit_defaults=True):
    """The nodes on which pods may be evicted, and which pods these are."""

    victims: dict[str, NodeVictims] = {}


ExtenderAnswer = FilterAnswer | PrioritizeAnswer | PreemptAnswer
