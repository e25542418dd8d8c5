"""Which field of an object cannot be read, and why, in the words of its author."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from mooring.documents.errors import shown
from mooring.objects.decode import DecodeError

#: Reads an object, or raises DecodeError.
Decode = Callable[[Any], object]

Step = str | int
_EACH = "..."

_COMPLAINT = re.compile(r"(?s)(?P<what>.*) - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_MISSING = re.compile(r"Object missing required field `([^`]*)`")
_EXPECTED = re.compile(r"Expected `([^`]*)`")
_NOUNS = {
    "array": "a list",
    "bool": "true or false",
    "datetime": "a time",
    "float": "a number",
    "int": "an integer",
    "object": "a mapping",
    "str": "a string",
}
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


def explain(decode: Decode, raw: Any, error: str) -> tuple[str, str]:
    """The path of the field that the decoder complains about, and the complaint."""
    match = _COMPLAINT.fullmatch(error)
    what = match["what"] if match else error
    steps = _located(decode, raw, error, _steps(match["path"]) if match else [])
    missing = _MISSING.fullmatch(what)
    if missing:
        return path_of([*steps, missing[1]]), "is required"
    return path_of(steps), _told(what, _at(raw, steps), steps)


def path_of(steps: list[Step]) -> str:
    """A path as users write it: spec.containers[0].resources.requests["example.com/gpu"]."""
    path = ""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            path += f".{step}" if path else step
        else:
            path += f'["{step}"]'
    return path


def _steps(path: str) -> list[Step]:
    return [
        name or (int(index) if index != _EACH else _EACH) for name, index in _STEP.findall(path)
    ]


def _located(decode: Decode, raw: Any, error: str, steps: list[Step]) -> list[Step]:
    """The steps with every "any of these" replaced by the key of the entry that is to blame."""
    for at, step in enumerate(steps):
        if step == _EACH:
            entries = _at(raw, steps[:at])
            for key in entries if isinstance(entries, Mapping) else ():
                alone = _with(raw, steps[:at], {key: entries[key]})
                if _complains(decode, alone, error):
                    return _located(decode, alone, error, [*steps[:at], key, *steps[at + 1 :]])
            return steps[:at]
    return steps


def _complains(decode: Decode, raw: Any, error: str) -> bool:
    try:
        decode(raw)
    except DecodeError as again:
        return str(again) == error
    return False


def _at(raw: Any, steps: list[Step]) -> Any:
    for step in steps:
        raw = raw[step]
    return raw


def _with(raw: Any, steps: list[Step], value: Any) -> Any:
    """The object with another value at the end of the steps."""
    if not steps:
        return value
    first, *rest = steps
    changed = _with(raw[first], rest, value)
    if isinstance(first, int):
        return [*raw[:first], changed, *raw[first + 1 :]]
    return {**raw, first: changed}


def _told(what: str, value: Any, steps: list[Step]) -> str:
    """The decoder's complaint in the words that a user knows."""
    if what.endswith("is not a quantity"):
        return f"{shown(value)} is not a quantity"
    if what.startswith("expected a quantity"):
        return f"must be a quantity, got {shown(value)}"
    if what.startswith("Invalid enum value") and steps:
        return f"unknown {steps[-1]} {shown(value)}"
    if what.startswith("Invalid RFC3339"):
        return f"{shown(value)} is not a time such as 2025-01-31T12:00:00Z"
    expected = _EXPECTED.match(what)
    if expected is None:
        return what
    noun = _NOUNS.get(expected[1].removesuffix(" | null"), expected[1])
    return f"must be {noun}, got {shown(value)}"
