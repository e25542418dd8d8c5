"""Reads JSON: values one after the other, with unique keys, however deep they are nested.

An API server accepts objects nested up to 10,000 levels deep, for example in
`metadata.managedFields`. Decoders recurse and give up long before; their limit depends on the
Python version and on the caller's own stack. Scheduling reads less than 20 levels of an object. So
nothing is lost when deeper levels are emptied, and no object can hide others by its depth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from .errors import InputError, Location

#: How deep custom objects are kept. Of others nothing half as deep is read.
DEEPEST = 100

# Lists and lines of watches wrap objects in a few more levels.
_DEEPEST_IN_TEXT = DEEPEST + 10

# From one bracket to the next or to the end, strings skipped. Nothing is given back once it has
# matched, so that the cost is linear whatever the text.
_TO_BRACKET = re.compile(
    rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?+)*+(?:([\[{])|([\]}])|\Z)', re.DOTALL
)
_ITEMS = re.compile(rb'(?<!\\)"items"\s*+:\s*+\[\Z')

_BLANK = re.compile(r"[ \t\n\r]*")

_T = TypeVar("_T")


def decode_at_any_depth(decode: Callable[[bytes], _T], text: bytes | msgspec.Raw) -> _T:
    """Decodes JSON; if it is nested too deeply for that, the deepest levels are left out."""
    try:
        return decode(text)
    except RecursionError:
        return decode(cut(text))


def cut(text: bytes | msgspec.Raw, deepest: int = _DEEPEST_IN_TEXT) -> bytes:
    """Returns the same JSON with empty objects and arrays below a depth.

    Broken JSON stays broken.
    """
    whole = bytes(text)
    kept: list[bytes] = []
    begin = 0
    for _, at, depth in _brackets(whole):
        if depth == deepest + 1:
            kept.append(whole[begin : at + 1])
        elif depth == -(deepest + 1):
            begin = at
    kept.append(whole[begin:])
    return b"".join(kept)


def empty_below(raw: dict[str, Any] | list[Any], deepest: int = DEEPEST) -> None:
    """Empties mappings and lists below a depth, in place. It does not recurse."""
    level: list[Any] = [raw]
    for _ in range(deepest):
        level = [
            value
            for each in level
            for value in (each.values() if isinstance(each, dict) else each)
            if isinstance(value, dict | list) and value
        ]
        if not level:
            return
    for each in level:
        each.clear()


def split_list(text: bytes) -> tuple[bytes, list[bytes]]:
    """Returns a list of the API without its items, and the items, one text each.

    It looks at brackets only, so that an item which is not JSON spoils no other.
    """
    items: list[bytes] = []
    first = last = begin = 0
    for before, at, depth in _brackets(text):
        if not first:
            if depth == 2 and _ITEMS.search(text, before, at + 1):
                first = begin = at + 1
            continue
        if depth in (3, -2):
            # Between two items there is nothing but a comma.
            between = text[begin:at].strip(b" \t\r\n,")
            items += [between] if between else []
            begin = at
        elif depth == -3:
            items.append(text[begin : at + 1])
            begin = at + 1
        if depth == -2:
            last = at
            break
    return text[:first] + text[last or first :], items


def _brackets(text: bytes) -> Iterator[tuple[int, int, int]]:
    """Yields where the last bracket ended, where the next is, its depth; negative if it closes."""
    depth = 0
    for match in _TO_BRACKET.finditer(text):
        kind = match.lastindex
        if kind == 1:
            depth += 1
            yield match.start(), match.end() - 1, depth
        elif kind == 2:
            yield match.start(), match.end() - 1, -depth
            depth -= 1


def documents(text: str, file: str) -> Iterator[tuple[Location, Any]]:
    """Yields the values of a text, one after the other, without those nested too deeply."""
    at, number, is_cut = _blank_to(text, 0), 0, False
    # Looked for once, not for every value: a file may have very many.
    has_surrogates = "\\ud" in text or "\\uD" in text
    while at < len(text):
        number += 1
        place = Location(file, number, line=1 if number == 1 else 0)
        try:
            value, end = _value(text, at, place, has_surrogates)
        except RecursionError:
            if is_cut:
                raise InputError(place, "nested too deeply") from None
            # All that follows at once: cutting each value by itself would read the rest each time.
            text, at, is_cut = cut(text[at:].encode()).decode(), 0, True
            number -= 1
            continue
        yield place, value
        at = _blank_to(text, end)


def _blank_to(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int, place: Location, has_surrogates: bool) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text, at)
        if has_surrogates:
            # Half of a surrogate pair is no character: it could neither be compared nor printed.
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise InputError(place, f"broken JSON: {where}") from None
    except UnicodeEncodeError:
        raise InputError(place, "broken JSON: half of a surrogate pair") from None
    except ValueError as error:
        raise InputError(place, f"broken JSON: {error}") from None
    return value, end


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f'duplicate key "{twice}"')
    return made


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
