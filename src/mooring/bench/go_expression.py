"""Expressions of templates: fields, variables, numbers, texts, calls and pipes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .go_functions import FUNCTIONS, Missing

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*"|`[^`]*`)
    |(?P<number>-?\d+(?:\.\d+)?)
    |(?P<field>(?:\.[A-Za-z_]\w*)+|\.)
    |(?P<variable>\$\w*(?:\.[A-Za-z_]\w*)*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<mark>:=|[|()])
    )""",
    re.VERBOSE,
)

_CONSTANTS = {"true": True, "false": False, "nil": None}


@dataclass(slots=True)
class Scope:
    """What names stand for while a template is written out."""

    dot: Any
    variables: dict[str, Any] = field(default_factory=dict)


Expression = Callable[[Scope], Any]


class BadExpression(ValueError):
    """An expression that cannot be read."""


def tokens(text: str) -> list[tuple[str, str]]:
    """The words of an action, each with its kind."""
    found: list[tuple[str, str]] = []
    at, text = 0, text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise BadExpression(f"cannot read {text[at:]!r}")
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


def parse(words: list[tuple[str, str]]) -> Expression:
    """The expression that these words are."""
    reader = _Reader(words)
    expression = reader.pipeline()
    if reader.left:
        raise BadExpression(f"unexpected {reader.left[0][1]!r}")
    return expression


class _Reader:
    def __init__(self, words: list[tuple[str, str]]) -> None:
        self.left = list(words)

    def pipeline(self) -> Expression:
        value = self._command(None)
        while self._next_is("|"):
            self.left.pop(0)
            value = self._command(value)
        return value

    def _command(self, piped: Expression | None) -> Expression:
        if not self.left:
            raise BadExpression("an expression is missing")
        kind, word = self.left[0]
        if kind == "name" and word not in _CONSTANTS:
            self.left.pop(0)
            return self._call(word, piped)
        if piped is not None:
            raise BadExpression(f"cannot pipe into {word!r}")
        return self._operand()

    def _call(self, name: str, piped: Expression | None) -> Expression:
        function = FUNCTIONS.get(name)
        if function is None:
            raise BadExpression(f"unknown function {name!r}")
        arguments = []
        while self.left and self.left[0][1] not in ("|", ")"):
            arguments.append(self._operand())
        if piped is not None:
            arguments.append(piped)

        def called(scope: Scope) -> Any:
            try:
                return function(*(argument(scope) for argument in arguments))
            except TypeError:
                raise ValueError(f"{name} does not take {len(arguments)} values") from None

        return called

    def _operand(self) -> Expression:
        kind, word = self.left.pop(0)
        if word == "(":
            inner = self.pipeline()
            if not self._next_is(")"):
                raise BadExpression("a closing parenthesis is missing")
            self.left.pop(0)
            return inner
        if kind == "mark" or (kind == "name" and word not in _CONSTANTS):
            raise BadExpression(f"unexpected {word!r}")
        return _READERS[kind](word)

    def _next_is(self, mark: str) -> bool:
        return bool(self.left) and self.left[0] == ("mark", mark)


def _field(word: str) -> Expression:
    names = word.split(".")[1:] if word != "." else []
    return lambda scope: _looked_up(scope.dot, names, word)


def _variable(word: str) -> Expression:
    variable, *names = word.split(".")

    def looked_up(scope: Scope) -> Any:
        if variable not in scope.variables:
            return Missing(word)
        return _looked_up(scope.variables[variable], names, word)

    return looked_up


def _looked_up(value: Any, names: list[str], word: str) -> Any:
    for name in names:
        if not isinstance(value, Mapping):
            raise ValueError(f"{word} is asked of {value!r}, which has no fields")
        if name not in value:
            return Missing(word)
        value = value[name]
    return value


def _literal(value: Any) -> Expression:
    return lambda scope: value


_READERS: Mapping[str, Callable[[str], Expression]] = {
    "string": lambda word: _literal(re.sub(r"\\(.)", r"\1", word[1:-1])),
    "number": lambda word: _literal(float(word) if "." in word else int(word)),
    "field": _field,
    "variable": _variable,
    "name": lambda word: _literal(_CONSTANTS[word]),
}
