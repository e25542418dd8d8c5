"""The columns of a table of objects, and the paths to their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from moorage.embedded.store.object_store import Json

Value = Callable[[Json], Any]

NONE, UNKNOWN = "<none>", "<unknown>"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its title, and a function that gives the cell of an object."""

    name: str
    value: Callable[[Json, datetime], Any]
    type: str = "string"
    #: 0 is always shown, more only where there is room.
    priority: int = 0
    format: str = ""

    @property
    def definition(self) -> Json:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": "",
            "priority": self.priority,
        }

    def cell(self, item: Json, now: datetime) -> Any:
        return self.value(item, now)


def text_column(name: str, value: Value, *, type: str = "string", wide: bool = False) -> Column:
    """Makes a column whose cells depend on the object alone."""
    return Column(name, lambda item, _: value(item), type, int(wide))


def field_column(name: str, path: str, default: Any = NONE, *, wide: bool = False) -> Column:
    """Makes a column with the value of one field."""
    return text_column(name, lambda item: at(item, path, default), wide=wide)


NAME = Column("Name", lambda item, _: item["metadata"]["name"], format="name")


def at(item: Mapping[str, Any], path: str, default: Any = NONE) -> Any:
    """Returns the value at a path such as spec.nodeName, or the default if there is none."""
    value: Any = item
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return default if value is None or value == "" else value


def age_column(path: str = "metadata.creationTimestamp", name: str = "Age") -> Column:
    """Makes a column that says how long ago the time at a path was."""
    return Column(name, lambda item, now: since(at(item, path, ""), now))


def since(moment: str, now: datetime) -> str:
    if not moment:
        return UNKNOWN
    return duration(now - datetime.fromisoformat(moment))


def duration(span: timedelta) -> str:
    """Formats a span of time as kubectl does: 90s, 5m10s, 3h, 2d."""
    seconds = int(span.total_seconds())
    if seconds < 0:
        return "0s" if seconds >= -2 else "<invalid>"
    for most, write in _SPANS:
        if seconds < most:
            return write(seconds)
    return f"{seconds // _YEAR}y"


_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_YEAR = 365 * _DAY


def _two(seconds: int, unit: int, below: int, names: str) -> str:
    whole, rest = divmod(seconds, unit)
    part = rest // below
    return f"{whole}{names[0]}{part}{names[1]}" if part else f"{whole}{names[0]}"


_SPANS: tuple[tuple[int, Callable[[int], str]], ...] = (
    (2 * _MINUTE, lambda seconds: f"{seconds}s"),
    (10 * _MINUTE, lambda seconds: _two(seconds, _MINUTE, 1, "ms")),
    (3 * _HOUR, lambda seconds: f"{seconds // _MINUTE}m"),
    (8 * _HOUR, lambda seconds: _two(seconds, _HOUR, _MINUTE, "hm")),
    (2 * _DAY, lambda seconds: f"{seconds // _HOUR}h"),
    (8 * _DAY, lambda seconds: _two(seconds, _DAY, _HOUR, "dh")),
    (2 * _YEAR, lambda seconds: f"{seconds // _DAY}d"),
    (8 * _YEAR, lambda seconds: _two(seconds, _YEAR, _DAY, "yd")),
)


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
    """Returns the first value that a path leads to."""
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
    return partial(_child_of, parts["quoted"] or re.sub(r"\\(.)", r"\1", parts["name"]))


def _child_of(name: str, value: Any) -> Iterator[Any]:
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
            found = next(_child_of(name, found), None)
        if found is not None and (_text(found) == wanted) is equal:
            yield each


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
