"""The tree of an expression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Constant:
    value: Any


@dataclass(frozen=True)
class Name:
    """A variable, a type, or a variable of a comprehension."""

    name: str


@dataclass(frozen=True)
class Select:
    operand: Node
    field: str
    #: `has(operand.field)`
    test: bool


@dataclass(frozen=True)
class Call:
    function: str
    #: The target of a method comes first.
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class ListOf:
    elements: tuple[Node, ...]
    #: Places of the elements that are written `?element`.
    optional: frozenset[int]


@dataclass(frozen=True)
class MapOf:
    #: Key, value, and whether the entry is written `?key: value`.
    entries: tuple[tuple[Node, Node, bool], ...]


@dataclass(frozen=True)
class Comprehension:
    """What `all`, `exists`, `map`, `filter` and `cel.bind` are expanded to."""

    item: str
    second_item: str
    items: Node
    result_name: str
    start: Node
    condition: Node
    step: Node
    result: Node


Node = Constant | Name | Select | Call | ListOf | MapOf | Comprehension


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.arguments
        case ListOf():
            return node.elements
        case MapOf():
            return tuple(part for key, value, _ in node.entries for part in (key, value))
        case Comprehension():
            return (node.items, node.start, node.condition, node.step, node.result)
    return ()


def walk(node: Node) -> Iterator[Node]:
    """Yields a node and everything below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def size(node: Node) -> int:
    """Returns how many parts a tree has."""
    return 1 + sum(map(size, children(node)))
