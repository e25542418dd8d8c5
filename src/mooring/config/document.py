"""From the text of a file to mappings and lists, and what is wrong with the text itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from mooring.documents.errors import Problems, child, item

try:
    from yaml import CSafeLoader as Loader
except ImportError:  # PyYAML built without libyaml
    from yaml import SafeLoader as Loader  # type: ignore[assignment]

# The deepest path of a real configuration has about a dozen steps. The C loader recurses
# without a limit of its own, so that hostile nesting would end the process.
DEEPEST = 100

# PyYAML's constructors let these through for a value that belies its tag, such as !!int "".
_UNREADABLE = (ValueError, LookupError, AttributeError, TypeError)


def read(text: str | bytes, problems: Problems) -> Any:
    """The content of a YAML or JSON document, None if it cannot be read."""
    try:
        if _too_deep(text):
            problems.add("", f"nested more than {DEEPEST} levels deep")
            return None
        return _content(text, problems)
    except yaml.YAMLError as error:
        problems.add("", _told(error))
    except _UNREADABLE as error:
        problems.add("", f"cannot be read as YAML: {error}")
    return None


def _content(text: str | bytes, problems: Problems) -> Any:
    loader = Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        # On the nodes, because constructing a mapping merges and drops keys.
        for path, mark in _duplicates(root, "", set()):
            problems.add(path, f"duplicate key ({_place(mark)})")
        return loader.construct_document(root)
    finally:
        loader.dispose()


def _too_deep(text: str | bytes) -> bool:
    depth = 0
    for event in yaml.parse(text, Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            return True
    return False


def _duplicates(
    node: yaml.Node, path: str, visited: set[int]
) -> Iterator[tuple[str, yaml.Mark | None]]:
    # An alias may lead back to a node that contains it.
    if id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, element in enumerate(node.value):
            yield from _duplicates(element, item(path, index), visited)
    elif isinstance(node, yaml.MappingNode):
        names: set[str] = set()
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            where = child(path, name)
            if name in names and isinstance(key, yaml.ScalarNode):
                yield where, key.start_mark
            names.add(name)
            yield from _duplicates(value, where, visited)


def _told(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())
    context = f" ({error.context})" if error.context else ""
    return f"{_place(error.problem_mark)}: {error.problem or 'broken YAML'}{context}"


def _place(mark: yaml.Mark | None) -> str:
    return "somewhere" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"
