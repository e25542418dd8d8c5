"""The part of Go's template language that workloads use, written out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .go_expression import BadExpression, Expression, Scope, parse, tokens
from .go_functions import Missing, text
from .problems import WorkloadError

_ACTION = re.compile(r"\{\{(- )?(.*?)( -)?\}\}", re.DOTALL)

# Go allows more, but an endless template helps nobody.
_LONGEST_RANGE = 100_000

#: Writes a part of a template.
_Part = Callable[[Scope], Iterator[str]]


class Template:
    """A text with actions in double braces."""

    def __init__(self, content: str, source: str) -> None:
        self.content = content
        self.source = source
        try:
            self._body = self._parts(_pieces(content), ends=False)[0]
        except BadExpression as error:
            raise WorkloadError(source, error) from None

    def render(self, given: Mapping[str, Any]) -> str:
        """The text for these values; raises WorkloadError naming what is not given."""
        scope = Scope(given, {"$": given})
        try:
            return "".join(_written(self._body, scope))
        except (ValueError, ArithmeticError) as error:
            raise WorkloadError(self.source, error) from None

    def _parts(
        self, pieces: Iterator[tuple[bool, str]], *, ends: bool
    ) -> tuple[list[_Part], list[tuple[str, str]]]:
        """What comes before the next `else` or `end`, and the words of that one."""
        parts: list[_Part] = []
        for is_action, piece in pieces:
            if not is_action:
                parts.append(_literal(piece))
                continue
            words = tokens(piece)
            if not words:
                continue
            if words[0][1] in ("end", "else"):
                if not ends:
                    raise BadExpression(f"{words[0][1]!r} without an opening action")
                return parts, words
            parts.append(self._action(words, pieces))
        if ends:
            raise BadExpression("an 'end' is missing")
        return parts, []

    def _action(self, words: list[tuple[str, str]], pieces: Iterator[tuple[bool, str]]) -> _Part:
        match words:
            case [("name", "if"), *condition]:
                return self._condition(condition, pieces)
            case [("name", "range"), ("variable", name), ("mark", ":="), *over]:
                return self._range(parse(over), pieces, name)
            case [("name", "range"), *over]:
                return self._range(parse(over), pieces, "")
            case [("variable", name), ("mark", ":="), *value]:
                return _assignment(name, parse(value))
            case _:
                return _value(parse(words))

    def _condition(
        self, condition: list[tuple[str, str]], pieces: Iterator[tuple[bool, str]]
    ) -> _Part:
        chosen = parse(condition)
        yes, words = self._parts(pieces, ends=True)
        no: list[_Part] = []
        if [word for _, word in words[:2]] == ["else", "if"]:
            no = [self._condition(words[2:], pieces)]
        elif words[0][1] == "else":
            no, _ = self._parts(pieces, ends=True)
        return lambda scope: _written(yes if chosen(scope) else no, scope)

    def _range(self, over: Expression, pieces: Iterator[tuple[bool, str]], name: str) -> _Part:
        body, words = self._parts(pieces, ends=True)
        if words[0][1] == "else":
            raise BadExpression("'else' of a range is not supported")

        def repeated(scope: Scope) -> Iterator[str]:
            for each in _elements(over(scope)):
                inner = Scope(each, dict(scope.variables))
                if name:
                    inner = Scope(scope.dot, {**scope.variables, name: each})
                yield from _written(body, inner)

        return repeated


def _pieces(content: str) -> Iterator[tuple[bool, str]]:
    """Texts and actions in turn, and whether each is an action."""
    at, trims = 0, False
    for match in _ACTION.finditer(content):
        before = content[at : match.start()]
        before = before.lstrip() if trims else before
        yield False, before.rstrip() if match[1] else before
        if not match[2].strip().startswith("/*"):
            yield True, match[2]
        at, trims = match.end(), bool(match[3])
    rest = content[at:]
    yield False, rest.lstrip() if trims else rest


def _written(parts: Iterable[_Part], scope: Scope) -> Iterator[str]:
    for part in parts:
        yield from part(scope)


def _literal(piece: str) -> _Part:
    return lambda scope: iter((piece,))


def _value(expression: Expression) -> _Part:
    def written(scope: Scope) -> Iterator[str]:
        value = expression(scope)
        if isinstance(value, Missing):
            raise ValueError(f"{value.name} is not given")
        yield text(value)

    return written


def _assignment(name: str, expression: Expression) -> _Part:
    def assigned(scope: Scope) -> Iterator[str]:
        scope.variables[name] = expression(scope)
        return iter(())

    return assigned


def _elements(value: Any) -> Iterable[Any]:
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if value > _LONGEST_RANGE:
            raise ValueError(f"a range of {value} is longer than {_LONGEST_RANGE}")
        return range(value)
    raise ValueError(f"cannot range over {text(value)}")
