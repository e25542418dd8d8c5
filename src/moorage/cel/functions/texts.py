"""Functions of texts."""

from __future__ import annotations

import re
from typing import Any

from moorage.cel import checker
from moorage.cel.functions.function_table import FunctionTable
from moorage.cel.values import CelError, Meter, Uint, type_name

TABLE = FunctionTable()

#: What Go takes for white space.
_WHITE_SPACE = "".join(
    map(chr, (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029))
)
_WHITE_SPACE += "\u202f\u205f\u3000"
_CLAUSE = re.compile(r"%(?:\.[0-9]+)?(.?)", re.DOTALL)

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: upper for upper, lower in _LOWER.items()}


@TABLE.takes("contains", str, str)
def _contains(meter: Meter, text: str, part: str) -> bool:
    meter.charge_text(len(text) + len(part))
    return part in text


@TABLE.takes("startsWith", str, str)
def _starts_with(meter: Meter, text: str, part: str) -> bool:
    meter.charge_text(len(part))
    return text.startswith(part)


@TABLE.takes("endsWith", str, str)
def _ends_with(meter: Meter, text: str, part: str) -> bool:
    meter.charge_text(len(part))
    return text.endswith(part)


@TABLE.takes("lowerAscii", str)
def _lower(meter: Meter, text: str) -> str:
    meter.charge_text(len(text))
    return text.translate(_LOWER)


@TABLE.takes("upperAscii", str)
def _upper(meter: Meter, text: str) -> str:
    meter.charge_text(len(text))
    return text.translate(_UPPER)


@TABLE.takes("trim", str)
def _trim(meter: Meter, text: str) -> str:
    meter.charge_text(len(text))
    return text.strip(_WHITE_SPACE)


@TABLE.takes("matches", str, str)
def _matches(meter: Meter, text: str, pattern: str) -> bool:
    _charge_pattern(meter, text, pattern)
    return checker.matches(text, pattern)


@TABLE.takes("find", str, str)
def _find(meter: Meter, text: str, pattern: str) -> str:
    _charge_pattern(meter, text, pattern)
    return checker.find(text, pattern)


@TABLE.takes("findAll", str, str)
@TABLE.takes("findAll", str, str, int)
def _find_all(meter: Meter, text: str, pattern: str, limit: int = -1) -> list[str]:
    _charge_pattern(meter, text, pattern)
    found = checker.find_all(text, pattern)
    return found if limit < 0 else found[:limit]


def _charge_pattern(meter: Meter, text: str, pattern: str) -> None:
    """Charges for compiling the pattern, which costs more per character than matching."""
    meter.charge(20 + len(pattern) + len(text) * len(pattern) // 64)


@TABLE.takes("charAt", str, int)
def _char_at(meter: Meter, text: str, place: int) -> str:
    return text[_within(text, place) : place + 1]


@TABLE.takes("indexOf", str, str)
@TABLE.takes("indexOf", str, str, int)
def _index_of(meter: Meter, text: str, part: str, start: int = 0) -> int:
    meter.charge_text(len(text))
    return text.find(part, _within(text, start))


@TABLE.takes("lastIndexOf", str, str)
@TABLE.takes("lastIndexOf", str, str, int)
def _last_index_of(meter: Meter, text: str, part: str, start: int | None = None) -> int:
    meter.charge_text(len(text))
    if start is None:
        return text.rfind(part)
    return text.rfind(part, 0, _within(text, start) + len(part))


@TABLE.takes("substring", str, int)
@TABLE.takes("substring", str, int, int)
def _substring(meter: Meter, text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else _within(text, end)
    if _within(text, start) > last:
        raise CelError(f"invalid substring range. start: {start}, end: {last}")
    return text[start:last]


def _within(text: str, place: int) -> int:
    if not 0 <= place <= len(text):
        raise CelError(f"index out of range: {place}")
    return place


@TABLE.takes("replace", str, str, str)
@TABLE.takes("replace", str, str, str, int)
def _replace(meter: Meter, text: str, old: str, new: str, limit: int = -1) -> str:
    times = text.count(old) if old else len(text) + 1
    meter.charge_text(len(text) + times * len(new))
    return text.replace(old, new, limit)


@TABLE.takes("split", str, str)
@TABLE.takes("split", str, str, int)
def _split(meter: Meter, text: str, separator: str, limit: int = -1) -> list[str]:
    meter.charge(1 + len(text))
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


@TABLE.takes("join", list)
@TABLE.takes("join", list, str)
def _join(meter: Meter, parts: list[Any], separator: str = "") -> str:
    meter.charge(len(parts))
    if not all(isinstance(part, str) for part in parts):
        raise CelError("no such overload")
    meter.charge_text(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


@TABLE.takes("format", str, list)
def _format(meter: Meter, text: str, values: list[Any]) -> str:
    meter.charge_text(len(text))
    places = iter(range(len(values) + len(text)))

    def fill(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        place = next(places)
        if place >= len(values):
            raise CelError(f"index {place} out of range")
        written = _format_value(match[0], values[place])
        meter.charge_text(16 + len(written))
        return written

    return _CLAUSE.sub(fill, text)


def _format_value(clause: str, value: Any) -> str:
    kind = type(value)
    if clause == "%s" and kind in (str, int, Uint, bool):
        return str(value).lower() if kind is bool else str(value)
    if clause in ("%d", "%x", "%X", "%o", "%b") and kind in (int, Uint):
        return format(value, clause[1])
    raise CelError(f"the function format is not supported for {clause} and {type_name(value)}")
