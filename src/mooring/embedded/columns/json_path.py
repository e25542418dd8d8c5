"""The paths by which definitions say what a table shows of their resources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_STEPS = re.compile(
    r"""
      \.(?P<name>(?:\\.|[^.\[\\])+)
    | \['(?P<quoted>[^']+)'\]
    | \[(?P<index>-?[0-9]{1,9})\]
    | \[(?P<all>\*)\]
    | \[\?\(@(?P<way>(?:\.[^.=!\[\s]+)+)\s*(?P<sign>==|!=)\s*(?P<value>"[^"]*"|'[^']*'|[^)\s]+)\)\]
    """,
    re.VERBOSE,
)


def read_path(text: str) -> list[Step] | None:
    """The steps of a path such as .status.conditions[?(@.type=="Ready")].status; None if it is no
    path that is understood."""
    steps, at = [], 0
    while at < len(text):
        found = _STEPS.match(text, at)
        if found is None:
            return None
        steps.append(_step(found))
        at = found.end()
    return steps


def first(steps: list[Step] | None, item: Any) -> Any:
    """The first value that a path leads to."""
    if steps is None:
        return None
    values = [item]
    for step in steps:
        values = [each for value in values for each in step(value)]
    return values[0] if values else None


def _step(found: re.Match[str]) -> Step:
    parts = found.groupdict()
    if parts["index"]:
        return partial(_at, int(parts["index"]))
    if parts["all"]:
        return _all
    if parts["way"]:
        way = [step for step in parts["way"].split(".") if step]
        wanted = parts["value"].strip("\"'")
        return partial(_where, way, wanted, parts["sign"] == "==")
    return partial(_named, parts["quoted"] or re.sub(r"\\(.)", r"\1", parts["name"]))


def _named(name: str, value: Any) -> Iterator[Any]:
    if isinstance(value, dict) and name in value:
        yield value[name]


def _at(index: int, value: Any) -> Iterator[Any]:
    if isinstance(value, list) and -len(value) <= index < len(value):
        yield value[index]


def _all(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _where(way: list[str], wanted: str, equal: bool, value: Any) -> Iterator[Any]:
    for each in value if isinstance(value, list) else ():
        found = each
        for name in way:
            found = next(_named(name, found), None)
        if found is not None and (_text(found) == wanted) is equal:
            yield each


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
