"""Reading JSON: one value after the other, each key once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from mooring.objects.nesting import cut

from .problems import InputError, Place

_BLANK = re.compile(r"[ \t\n\r]*")


def documents(text: str, file: str) -> Iterator[tuple[Place, Any]]:
    """The values that are written one after the other; what lies too deep in them is left out."""
    at, number, is_cut = _blank_to(text, 0), 0, False
    # Looked for once, not for every value: a file may have very many.
    has_surrogates = "\\ud" in text or "\\uD" in text
    while at < len(text):
        number += 1
        place = Place(file, number)
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


def _value(text: str, at: int, place: Place, has_surrogates: bool) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text, at)
        if has_surrogates:
            # Half of a surrogate pair is no character: it could neither be compared nor printed.
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        told = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise InputError(place, f"broken JSON: {told}") from None
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
