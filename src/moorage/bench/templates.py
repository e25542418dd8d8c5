"""Template files: the part of Go's template language that workloads use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from moorage.documents.errors import describe

from .cases import WorkloadError, load_yaml
from .go_expression import BadExpression, Expression, Missing, TemplateScope, parse, to_text, tokens

_ACTION = re.compile(r"\{\{(- )?(.*?)( -)?\}\}", re.DOTALL)

# Go allows more. This bounds the memory that a mistake can take.
_LONGEST_RANGE = 100_000

#: Writes a part of a template.
_Part = Callable[[TemplateScope], Iterator[str]]


class ObjectTemplate:
    """A text with actions in double braces."""

    def __init__(self, content: str, source: str) -> None:
        self.content = content
        self.source = source
        try:
            self._body = self._parts(_pieces(content), ends=False)[0]
        except BadExpression as error:
            raise WorkloadError(source, error) from None

    def render(self, given: Mapping[str, Any]) -> str:
        """Renders the template with these values; raises WorkloadError naming what is not given."""
        scope = TemplateScope(given, {"$": given})
        try:
            return "".join(_write(self._body, scope))
        except (ValueError, ArithmeticError) as error:
            raise WorkloadError(self.source, error) from None

    def _parts(
        self, pieces: Iterator[tuple[bool, str]], *, ends: bool
    ) -> tuple[list[_Part], list[tuple[str, str]]]:
        """Returns what comes before the next `else` or `end`, and the words of that one."""
        parts: list[_Part] = []
        for is_action, piece in pieces:
            if not is_action:
                parts.append(_text_part(piece))
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
                return _assignment_part(name, parse(value))
            case _:
                return _value_part(parse(words))

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
        return lambda scope: _write(yes if chosen(scope) else no, scope)

    def _range(self, over: Expression, pieces: Iterator[tuple[bool, str]], name: str) -> _Part:
        body, words = self._parts(pieces, ends=True)
        if words[0][1] == "else":
            raise BadExpression("'else' of a range is not supported")

        def write(scope: TemplateScope) -> Iterator[str]:
            for each in _elements(over(scope)):
                inner = TemplateScope(each, dict(scope.variables))
                if name:
                    inner = TemplateScope(scope.dot, {**scope.variables, name: each})
                yield from _write(body, inner)

        return write


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


def _write(parts: Iterable[_Part], scope: TemplateScope) -> Iterator[str]:
    for part in parts:
        yield from part(scope)


def _text_part(piece: str) -> _Part:
    return lambda scope: iter((piece,))


def _value_part(expression: Expression) -> _Part:
    def write(scope: TemplateScope) -> Iterator[str]:
        value = expression(scope)
        if isinstance(value, Missing):
            raise ValueError(f"{value.name} is not given")
        yield to_text(value)

    return write


def _assignment_part(name: str, expression: Expression) -> _Part:
    def assign(scope: TemplateScope) -> Iterator[str]:
        scope.variables[name] = expression(scope)
        return iter(())

    return assign


def _elements(value: Any) -> Iterable[Any]:
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if value > _LONGEST_RANGE:
            raise ValueError(f"a range of {value} is longer than {_LONGEST_RANGE}")
        return range(value)
    raise ValueError(f"cannot range over {to_text(value)}")


Manifest = Mapping[str, Any]

# Where users choose the keys.
_FREE_KEYS = frozenset(
    (
        "allocatable",
        "annotations",
        "capacity",
        "labels",
        "limits",
        "matchLabels",
        "nodeSelector",
        "requests",
        "selector",
    )
)

_KIND = re.compile(r"(?:^|[{,] *)kind: *[\"']?(\w+)", re.MULTILINE)

# Objects that differ in their index alone would fill the memory.
_MOST_KEPT = 64


class Templates:
    """The templates that the test cases of a file name, by their path beside it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._templates: dict[str, ObjectTemplate] = {}
        self._manifests: dict[tuple[str, str], Manifest] = {}

    def manifest(self, path: str, given: Mapping[str, Any] | None = None) -> Manifest:
        """Returns the object that a template describes; the same value for the same text."""
        text = self._template(path).render(given or {})
        known = self._manifests.get((path, text))
        if known is None:
            known = self._parse(path, text)
            if len(self._manifests) >= _MOST_KEPT:
                self._manifests.clear()
            self._manifests[path, text] = known
        return known

    def kind(self, path: str) -> str:
        """Returns the kind of object that a template describes, whatever it is given."""
        match = _KIND.search(self._template(path).content)
        if match is None:
            raise WorkloadError(self._folder / path, "kind", "is required")
        return match[1]

    def _template(self, path: str) -> ObjectTemplate:
        template = self._templates.get(path)
        if template is None:
            template = self._templates[path] = self._read(path)
        return template

    def _read(self, path: str) -> ObjectTemplate:
        file = self._folder / path
        try:
            return ObjectTemplate(file.read_text(), str(file))
        except (OSError, UnicodeDecodeError) as error:
            text = error.strerror if isinstance(error, OSError) else "is not text"
            raise WorkloadError(file, (text or str(error)).lower()) from None

    def _parse(self, path: str, text: str) -> Manifest:
        file = self._folder / path
        raw = load_yaml(file, text)
        if not isinstance(raw, Mapping):
            raise WorkloadError(file, f"must be an object, got {describe(raw)}")
        for field in ("apiVersion", "kind"):
            if not isinstance(raw.get(field), str):
                raise WorkloadError(file, field, "is required")
        if not isinstance(raw.get("metadata", {}), Mapping):
            raise WorkloadError(file, "metadata", "must be a mapping")
        spelled: Manifest = _spell(raw)
        return spelled


def _spell(raw: Any) -> Any:
    """Returns the object with fields in their usual spelling.

    Go reads `NodeTaintsPolicy` for `nodeTaintsPolicy`, and some templates rely on it.
    """
    if isinstance(raw, list):
        return [_spell(each) for each in raw]
    if not isinstance(raw, Mapping):
        return raw
    return {
        _lower_first(key): value if key in _FREE_KEYS else _spell(value)
        for key, value in raw.items()
    }


def _lower_first(key: Any) -> Any:
    return key[:1].lower() + key[1:] if isinstance(key, str) and key.isidentifier() else key
