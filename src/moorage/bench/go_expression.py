"""Expressions of Go templates: fields, variables, literals, function calls and pipes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import ge, gt, le, lt, ne
from typing import Any


class Missing:
    """The value of a name that was not given: it is false and cannot be written."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __bool__(self) -> bool:
        return False


def to_text(value: Any) -> str:
    """Writes a value as Go does."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value)


def _number(value: Any) -> float:
    if isinstance(value, bool | Missing) or not isinstance(value, int | float | str):
        text = f"{value.name} is not given" if isinstance(value, Missing) else repr(value)
        raise ValueError(f"expected a number, got {text}")
    return float(value)


def _whole(value: Any) -> int:
    return int(_number(value))


def _sum(*values: Any) -> float:
    return sum(map(_number, values))


def _product(*values: Any) -> float:
    return math.prod(map(_number, values))


def _difference(one: Any, other: Any) -> float:
    return _number(one) - _number(other)


def _quotient(one: Any, other: Any) -> float:
    if not _number(other):
        raise ValueError("division by zero")
    return _number(one) / _number(other)


def _remainder(one: Any, other: Any) -> int:
    if not _whole(other):
        raise ValueError("division by zero")
    # Go's remainder has the sign of the first number.
    return int(math.fmod(_whole(one), _whole(other)))


def _truncate(function: Callable[..., float]) -> Callable[..., int]:
    return lambda *values: int(function(*values))


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare_values(one: Any, other: Any) -> bool:
        if isinstance(one, str) != isinstance(other, str):
            raise ValueError(f"cannot compare {to_text(one)} with {to_text(other)}")
        return compare(one, other)

    return compare_values


def _any_equal(one: Any, *others: Any) -> bool:
    if isinstance(one, Missing):
        return False
    return any(one == each for each in others)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "AddFloat": _sum,
    "AddInt": _truncate(_sum),
    "DivideFloat": _quotient,
    "DivideInt": _truncate(_quotient),
    "Int": _whole,
    "JSON": json.dumps,
    "Mod": _remainder,
    "MultiplyFloat": _product,
    "MultiplyInt": _truncate(_product),
    "SubtractFloat": _difference,
    "SubtractInt": _truncate(_difference),
    "and": lambda *values: reduce(lambda one, other: one and other, values),
    "eq": _any_equal,
    "ge": _comparison(ge),
    "gt": _comparison(gt),
    "le": _comparison(le),
    "lt": _comparison(lt),
    "ne": _comparison(ne),
    "not": lambda value: not value,
    "or": lambda *values: reduce(lambda one, other: one or other, values),
}


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
class TemplateScope:
    """What names stand for while a template is written out."""

    dot: Any
    variables: dict[str, Any] = field(default_factory=dict)


Expression = Callable[[TemplateScope], Any]


class BadExpression(ValueError):
    """An expression that cannot be read."""


def tokens(text: str) -> list[tuple[str, str]]:
    """Returns the words of an action, each with its kind."""
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
    """Parses words into an expression."""
    reader = _Parser(words)
    expression = reader.pipeline()
    if reader.left:
        raise BadExpression(f"unexpected {reader.left[0][1]!r}")
    return expression


class _Parser:
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

        def call(scope: TemplateScope) -> Any:
            try:
                return function(*(argument(scope) for argument in arguments))
            except TypeError:
                raise ValueError(f"{name} does not take {len(arguments)} values") from None

        return call

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
        return _LITERALS[kind](word)

    def _next_is(self, mark: str) -> bool:
        return bool(self.left) and self.left[0] == ("mark", mark)


def _field(word: str) -> Expression:
    names = word.split(".")[1:] if word != "." else []
    return lambda scope: _look_up(scope.dot, names, word)


def _variable(word: str) -> Expression:
    variable, *names = word.split(".")

    def read(scope: TemplateScope) -> Any:
        if variable not in scope.variables:
            return Missing(word)
        return _look_up(scope.variables[variable], names, word)

    return read


def _look_up(value: Any, names: list[str], word: str) -> Any:
    for name in names:
        if not isinstance(value, Mapping):
            raise ValueError(f"{word} is asked of {value!r}, which has no fields")
        if name not in value:
            return Missing(word)
        value = value[name]
    return value


def _literal(value: Any) -> Expression:
    return lambda scope: value


_LITERALS: Mapping[str, Callable[[str], Expression]] = {
    "string": lambda word: _literal(re.sub(r"\\(.)", r"\1", word[1:-1])),
    "number": lambda word: _literal(float(word) if "." in word else int(word)),
    "field": _field,
    "variable": _variable,
    "name": lambda word: _literal(_CONSTANTS[word]),
}
