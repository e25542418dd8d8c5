"""The messages of Go's JSON decoder about invalid JSON, which users know."""

from __future__ import annotations

import re

_KINDS = {"{": "object", "[": "array", '"': "string", "t": "bool", "f": "bool", "n": "null"}
_LITERALS = ("true", "false", "null")

# What Python's decoder says, and where Go says that it stumbled.
_PLACES = {
    "Expecting property name enclosed in double quotes": (
        "looking for beginning of object key string"
    ),
    "Expecting value": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Invalid control character at": "in string literal",
}
_MORE_EXPECTED = "Expecting ',' delimiter"
_STRINGS_AND_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def kind_of(document: bytes) -> str:
    """Returns Go's name for the type of the value that a text begins with."""
    return _KINDS.get(document.lstrip(b" \t\r\n")[:1].decode(errors="replace"), "number")


def describe_syntax(text: str, problem: str, at: int) -> str:
    """Returns Go's message for the mistake that Python's decoder found."""
    if not text:
        return "EOF"
    at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n"))
    if at >= len(text) or problem.startswith("Unterminated"):
        return "unexpected EOF"
    if problem == "Expecting value":
        literal = _describe_literal(text[at:])
        if literal:
            return literal
    if problem == _MORE_EXPECTED:
        place = "after object key:value pair" if _is_in_object(text[:at]) else "after array element"
    elif problem.startswith("Invalid \\"):
        at, place = min(at + 1, len(text) - 1), "in string escape code"
    else:
        place = _PLACES.get(problem, "looking for beginning of value")
    return f"invalid character {_quote(text[at])} {place}"


def _describe_literal(rest: str) -> str:
    """Describes a mistake in a word that begins like true, false or null."""
    for literal in _LITERALS:
        if rest[0] == literal[0]:
            for wanted, found in zip(literal, rest, strict=False):
                if wanted != found:
                    expected = f"in literal {literal} (expecting {_quote(wanted)})"
                    return f"invalid character {_quote(found)} {expected}"
            return "unexpected EOF"
    return ""


def _is_in_object(before: str) -> bool:
    opened = []
    for token in _STRINGS_AND_BRACKETS.findall(before):
        if token in "{[":
            opened.append(token)
        elif token in "}]" and opened:
            opened.pop()
    return opened[-1:] == ["{"]


def _quote(character: str) -> str:
    if character == "'":
        return r"'\''"
    if character == '"':
        return "'\"'"
    return f"'{character}'" if character.isprintable() else repr(character)
