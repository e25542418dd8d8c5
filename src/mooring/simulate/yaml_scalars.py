"""What an unquoted word of YAML means to Kubernetes: times and 1:30 are text, 0o17 is a number."""

from __future__ import annotations

import re
from typing import Any

_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}

# Beyond 40 digits nothing is a number that anybody meant; Python would refuse thousands.
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


def resolved(text: str, tag: str | None) -> Any:
    """The value of a scalar; raises ValueError when it belies its tag or the tag is unknown."""
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
