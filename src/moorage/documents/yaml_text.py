"""Reads YAML as Kubernetes does, event by event.

It is several times faster than PyYAML's constructors, and hostile text cannot harm it: nothing
recurses, aliases are counted, deeply nested values are left out, and a text that cannot be an
object is refused before all of it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from .errors import DecodeError, InputError, Location
from .json_text import DEEPEST
from .yaml_lines import DumpReader, NotPlainError

try:
    from yaml import CSafeLoader as Loader
except ImportError:  # PyYAML built without libyaml
    from yaml import SafeLoader as Loader  # type: ignore[assignment]

# etcd takes no object above 1.5 MiB; indentation and managed fields may blow it up somewhat.
_LARGEST_OBJECT = 4 * 2**20

# Kubernetes objects have about five fields at the top.
_MOST_FIELDS = 100

# Aliases share a value when they are read, but a reader that walks it sees each of its places.
_MOST_ALIASED = 100_000

# A template that renders to nothing leaves one; more than this is no manifest.
_MOST_EMPTY = 10_000

_MERGE = "<<"
_NO_KEY: Any = object()


def documents(text: str, file: str) -> Iterator[tuple[Location, Any]]:
    """Yields the documents that are not empty; each is an object or a list of objects.

    Values nested too deeply are left out. Raises InputError.
    """
    dump = _read_dump(text)
    if dump is not None:
        yield Location(file, 1, line=1), dump
        return
    number = 1
    try:
        for number, line, root in _roots(text):
            if root is not None:
                yield Location(file, number, line=line), root
            # From here on, an error is about the next one.
            number += 1
    except _BadYAML as error:
        raise InputError(Location(file, number), error) from None
    except yaml.YAMLError as error:
        raise InputError(Location(file, number), f"broken YAML: {_message(error)}") from None


def _read_dump(text: str) -> Any:
    """Reads the text line by line if it is a plain List; else returns None."""
    reader = DumpReader(_plain, lambda part: next(root for _, _, root in _roots(part)))
    try:
        return reader.read(text)
    except (NotPlainError, _BadYAML, yaml.YAMLError):
        # The parser of all YAML says what is wrong, and where.
        return None


def read_document(text: str | bytes) -> Any:
    """Returns the content of one document; None if it is empty. Raises DecodeError.

    Values nested too deeply are refused.
    """
    try:
        whole = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        roots = [root for _, _, root in _roots(whole, are_objects=False)]
    except UnicodeDecodeError as error:
        raise DecodeError(f"not UTF-8 text (byte 0x{text[error.start]:02x})") from None
    except _BadYAML as error:
        raise DecodeError(str(error)) from None
    except yaml.YAMLError as error:
        raise DecodeError(f"broken YAML: {_message(error)}") from None
    if len(roots) > 1:
        raise DecodeError(f"must be one document, and has {len(roots)}")
    return roots[0] if roots else None


def _roots(text: str, *, are_objects: bool = True) -> Iterator[tuple[int, int, Any]]:
    """Yields each document's number, the line on which its value begins, and the value."""
    number = empty = line = 0
    builder = _Builder()
    for event in yaml.parse(text, Loader):
        if isinstance(event, yaml.DocumentStartEvent):
            number, line = number + 1, 0
            builder = _ObjectBuilder(event.start_mark) if are_objects else _Builder()
        elif isinstance(event, yaml.DocumentEndEvent):
            empty += builder.root is None
            if empty > _MOST_EMPTY:
                raise _BadYAML(f"more than {_MOST_EMPTY:,} empty documents", event)
            yield number, line, builder.root
        elif not isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent):
            line = line or _line(event.start_mark)
            builder.take(event)


def _line(mark: Any) -> int:
    return int(mark.line) + 1


class _BadYAML(ValueError):
    """YAML that is not a Kubernetes object."""

    def __init__(self, message: str, event: yaml.Event) -> None:
        super().__init__(f"{_position(event.start_mark)}: {message}")


@dataclass(slots=True)
class _Open:
    """A mapping or list that is not complete; `size` is what was counted before it."""

    value: Any
    anchor: str | None
    size: int
    key: Any = _NO_KEY
    merged: list[dict[str, Any]] = field(default_factory=list)


class _Builder:
    """Builds the value of one document."""

    def __init__(self) -> None:
        self.root: Any = None
        self._stack: list[_Open] = []
        #: Anchored values and how many values each consists of.
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._size = 0
        self._aliased = 0
        self._takes = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._mapping,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceStartEvent: self._sequence,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
        }

    def take(self, event: Any) -> None:
        self._takes[type(event)](event)

    def _scalar(self, event: Any) -> None:
        stack = self._stack
        if stack and stack[-1].key is _NO_KEY and type(stack[-1].value) is dict:
            # As for Kubernetes, keys are text, whatever they look like.
            self._key(stack[-1], event.value, event)
            return
        value: Any = event.value
        if event.implicit[0] or event.tag is not None:
            try:
                value = resolve_scalar(event.value, event.tag)
            except ValueError as error:
                raise _BadYAML(str(error), event) from None
        self._size += 1
        if event.anchor is not None:
            self._anchors[event.anchor] = value, 1
        self._put(value, event)

    def _key(self, top: _Open, key: str, event: Any) -> None:
        if key in top.value:
            raise _BadYAML(f'duplicate key "{key}"', event)
        top.key = key

    def _mapping(self, event: Any) -> None:
        self._open({}, event)

    def _sequence(self, event: Any) -> None:
        self._open([], event)

    def _open(self, value: Any, event: Any) -> None:
        stack = self._stack
        if stack and stack[-1].key is _NO_KEY and type(stack[-1].value) is dict:
            raise _BadYAML("a key must be text", event)
        stack.append(_Open(value, event.anchor, self._size))
        if len(stack) > DEEPEST:
            self._meet_too_deep(event)

    def _meet_too_deep(self, event: Any) -> None:
        raise _BadYAML(f"nested more than {DEEPEST} levels deep", event)

    def _end(self, event: Any) -> None:
        done = self._stack.pop()
        for each in done.merged:
            for key, value in each.items():
                done.value.setdefault(key, value)
        self._size += 1
        if done.anchor is not None:
            self._anchors[done.anchor] = done.value, self._size - done.size
        self._put(done.value, event)

    def _alias(self, event: Any) -> None:
        value, size = self._anchors.get(event.anchor, (None, 0))
        if not size:
            raise _BadYAML(f'unknown alias "{event.anchor}"', event)
        self._size += size
        self._aliased += size
        if self._aliased > _MOST_ALIASED:
            raise _BadYAML(f"aliases stand for more than {_MOST_ALIASED:,} values", event)
        if self._stack[-1].key is _NO_KEY and type(self._stack[-1].value) is dict:
            raise _BadYAML("an alias cannot be a key", event)
        self._put(value, event)

    def _put(self, value: Any, event: Any) -> None:
        if not self._stack:
            self.root = value
            return
        top = self._stack[-1]
        if type(top.value) is list:
            top.value.append(value)
            return
        key, top.key = top.key, _NO_KEY
        if key == _MERGE:
            top.merged += _mappings(value, event)
        else:
            top.value[key] = value


class _ObjectBuilder(_Builder):
    """Builds an object or a list of objects, and refuses other texts early."""

    def __init__(self, start: Any) -> None:
        super().__init__()
        self._object_start: int = start.index
        #: How many levels below the deepest that is kept the next value is, and where that began.
        self._too_deep = 0
        self._skipped_from = 0

    def take(self, event: Any) -> None:
        if self._too_deep:
            self._skip(event)
            return
        if event.start_mark.index - self._object_start > _LARGEST_OBJECT:
            largest = _LARGEST_OBJECT // 2**20
            raise _BadYAML(f"larger than any Kubernetes object ({largest} MiB)", event)
        super().take(event)

    def _meet_too_deep(self, event: Any) -> None:
        self._too_deep = 1
        self._skipped_from = event.start_mark.index

    def _skip(self, event: Any) -> None:
        """Skips values that are nested too deeply for anything to read them."""
        self._too_deep += isinstance(event, yaml.CollectionStartEvent)
        self._too_deep -= isinstance(event, yaml.CollectionEndEvent)
        if not self._too_deep:
            # Indentation makes such text long, and it is not kept.
            self._object_start += event.end_mark.index - self._skipped_from
            self._end(event)

    def _key(self, top: _Open, key: str, event: Any) -> None:
        super()._key(top, key, event)
        if len(self._stack) == 1 and len(top.value) == _MOST_FIELDS:
            raise _BadYAML(f"more than {_MOST_FIELDS} fields: no Kubernetes object", event)

    def _mapping(self, event: Any) -> None:
        if self._in_items():
            self._object_start = event.start_mark.index
        super()._mapping(event)

    def _sequence(self, event: Any) -> None:
        if not self._stack:
            raise _BadYAML("must be a mapping, got a list", event)
        super()._sequence(event)

    def _put(self, value: Any, event: Any) -> None:
        if not self._stack and value is not None and type(value) is not dict:
            raise _BadYAML("must be a mapping, got a scalar", event)
        if self._in_items():
            if type(value) is not dict:
                raise _BadYAML("an item must be a mapping", event)
            if not _is_named(value):
                raise _BadYAML("an item without metadata.name ends here", event)
        super()._put(value, event)

    def _in_items(self) -> bool:
        """Whether the next value is an item of something that looks like a List."""
        stack = self._stack
        return len(stack) == 2 and stack[0].key == "items" and type(stack[1].value) is list


def _is_named(item: dict[str, Any]) -> bool:
    metadata = item.get("metadata")
    return type(metadata) is dict and "name" in metadata


def _mappings(value: Any, event: Any) -> list[dict[str, Any]]:
    listed = value if type(value) is list else [value]
    if not all(type(each) is dict for each in listed):
        raise _BadYAML("<< merges mappings only", event)
    return listed


def _message(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        context = f" {error.context}" if error.context else ""
        return f"{_position(error.problem_mark)}: {error.problem}{context}"
    return " ".join(str(error).split())


def _position(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


# What an unquoted word means to Kubernetes: times and 1:30 are text, 0o17 is a number.

_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}

# More than 40 digits are not meant as a number; Python would refuse thousands.
_NUMBER = re.compile(
    r"""[-+]?(?:
        (?P<int>0|[1-9]\d{0,39})
        |0x(?P<hex>[0-9a-fA-F]{1,16})
        |0o?(?P<octal>[0-7]{1,22})
        |(?P<float>(?:\d{1,40}\.\d{0,40}|\.\d{1,40})(?:[eE][-+]?\d{1,4})?|\d{1,40}[eE][-+]?\d{1,4})
    )""",
    re.ASCII | re.VERBOSE,
)
_NUMBER_STARTS = frozenset("+-.0123456789")

_PREFIX = "tag:yaml.org,2002:"
_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
}


def resolve_scalar(text: str, tag: str | None) -> Any:
    """Returns the value of a scalar.

    Raises ValueError if it contradicts its tag or the tag is unknown.
    """
    if tag is None:
        return _plain(text)
    if tag in ("!", f"{_PREFIX}str", f"{_PREFIX}timestamp"):
        return text
    allowed = _TYPES.get(tag.removeprefix(_PREFIX))
    if allowed is None or not tag.startswith(_PREFIX):
        raise ValueError(f"tag {tag.replace(_PREFIX, '!!')} is not supported")
    value = _plain(text)
    if type(value) not in allowed:
        raise ValueError(f'"{text}" is no {tag.removeprefix(_PREFIX)}')
    return value


def _plain(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    sign = -1 if text[0] == "-" else 1
    digits = match[match.lastgroup or 0]
    match match.lastgroup:
        case "int":
            return sign * int(digits)
        case "hex":
            return sign * int(digits, 16)
        case "octal":
            return sign * int(digits, 8)
        case _:
            return sign * float(digits)
