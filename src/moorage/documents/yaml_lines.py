"""Reads the plain YAML of dumps line by line, many times faster than a full YAML parser.

A dump is a List whose items `kubectl get -o yaml` has printed: one key or value per line, nested by
indentation. Anything else (folded and quoted text over several lines, comments, anchors, mistakes)
is left to the full parser: a single item of the List, or the whole text. So this module never reads
a text differently from the full parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

# How the List begins; its other fields come after the items.
_BEGINNING = "apiVersion: v1\nitems:\n- "

# Keys and values of printable ASCII that need no escapes. A plain value neither begins as anything
# but text nor contains what would end it.
_KEY = r"[A-Za-z0-9_][A-Za-z0-9_./-]*"
_QUOTED = r"'[ -&(-~]*'|\"[ !#-\[\]-~]*\""
_PLAIN = r"(?:[A-Za-z0-9_./+~$();^<=]|-(?=[A-Za-z0-9.]))(?:[!-9;-~]|:(?=[!-~])| (?=[!-\"$-~]))*"
_VALUE = rf"(?P<{{}}>\{{{{\}}}}|\[\]|{_QUOTED}|{_PLAIN})"
_LINE = re.compile(
    r"(?P<indent> *)(?P<dash>- )?"
    rf"(?:(?P<key>{_KEY}):(?: {_VALUE.format('value')})?|{_VALUE.format('item')})"
)

_ANCHOR = re.compile(r"(?:: |- )[&*][^ ]")

# Nobody nests deeper in a dump, writes larger objects, or has more fields beside the items.
_DEEPEST = 50
_LARGEST_ITEM = 2 * 2**20
_MOST_FIELDS = 10
# So many lines are remembered: most lines of a dump occur again and again.
_MOST_LINES = 100_000

#: Column, whether it is an item of a list, key, whether there is a value, and the value.
_Parsed = tuple[int, bool, str | None, bool, Any]
#: Columns, and the mapping or list that continues there.
_Frame = tuple[int, bool, Any]


class NotPlainError(ValueError):
    """Text that only the full YAML parser can read."""


class DumpReader:
    """Reads the items of a List."""

    def __init__(self, resolve: Callable[[str], Any], read_list: Callable[[str], Any]) -> None:
        """`resolve` returns the value of an unquoted scalar, `read_list` reads any YAML."""
        self._resolve = resolve
        self._read_list = read_list
        self._lines: dict[str, _Parsed] = {}

    def read(self, text: str) -> dict[str, Any]:
        """Reads the List. Raises NotPlainError or what `read_list` raises."""
        if not text.startswith(_BEGINNING) or "\n---" in text or "\n..." in text:
            raise NotPlainError
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        starts = [at for at, line in enumerate(lines) if line[:2] == "- "]
        end = _find_end(lines, starts[-1])
        items = [
            self._read_item(lines[start:after])
            for start, after in zip(starts, [*starts[1:], end], strict=True)
        ]
        rest = self._read_block(lines[end:]) if end < len(lines) else {}
        if rest.keys() & {"apiVersion", "items"} or len(rest) > _MOST_FIELDS:
            raise NotPlainError
        return {"apiVersion": "v1", "items": items, **rest}

    def _read_item(self, lines: Sequence[str]) -> dict[str, Any]:
        try:
            if sum(map(len, lines)) > _LARGEST_ITEM:
                raise NotPlainError
            block = self._read_block(lines)
        except NotPlainError:
            block = self._read_by_itself(lines)
        if not (isinstance(block, list) and len(block) == 1 and _is_named(block[0])):
            raise NotPlainError
        item: dict[str, Any] = block[0]
        return item

    def _read_by_itself(self, lines: Sequence[str]) -> Any:
        """Reads an item with the full parser, which checks it as it checks a whole List."""
        if any(map(_ANCHOR.search, lines)):
            # Anchors may stand for what is elsewhere, and are counted over the whole text.
            raise NotPlainError
        return self._read_list("\n".join(("apiVersion: v1", "items:", *lines)))["items"]

    def _read_block(self, lines: Sequence[str]) -> Any:
        """Reads the list or mapping in some lines."""
        known = self._lines
        is_list = lines[0][:1] == "-"
        root: Any = [] if is_list else {}
        stack: list[_Frame] = [(0, is_list, root)]
        # Where the value goes that may begin on the next line.
        holder: dict[str, Any] | None = None
        name, least = "", 0
        for line in lines:
            column, is_item, key, has_value, value = known.get(line) or self._parse(line)
            if holder is not None and (column > least or (is_item and column == least)):
                inner: Any = [] if is_item else {}
                holder[name] = inner
                stack.append((column, is_item, inner))
            holder = None
            if stack[-1][0] != column or stack[-1][1] != is_item:
                _close(stack, column, is_item)
            target = stack[-1][2]
            if is_item:
                if key is None:
                    target.append(_fresh(value))
                    continue
                column += 2
                stack.append((column, False, _append_mapping(target)))
                target = stack[-1][2]
            if key is None or key in target or len(stack) > _DEEPEST:
                raise NotPlainError
            target[key] = _fresh(value)
            if not has_value:
                holder, name, least = target, key, column
        return root

    def _parse(self, line: str) -> _Parsed:
        match = _LINE.fullmatch(line)
        if match is None:
            raise NotPlainError
        text = match["value"] or match["item"] or ""
        value = self._read_value(text) if text else None
        parsed = len(match["indent"]), bool(match["dash"]), match["key"], bool(text), value
        if len(self._lines) >= _MOST_LINES:
            self._lines.clear()
        self._lines[line] = parsed
        return parsed

    def _read_value(self, text: str) -> Any:
        if text in ("{}", "[]"):
            return {} if text == "{}" else []
        return text[1:-1] if text[0] in "'\"" else self._resolve(text)


def _close(stack: list[_Frame], column: int, is_item: bool) -> None:
    """Ends open mappings and lists until one continues at a column."""
    while stack[-1][0] != column or stack[-1][1] != is_item:
        stack.pop()
        if not stack:
            raise NotPlainError


def _append_mapping(target: list[Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    target.append(made)
    return made


def _fresh(value: Any) -> Any:
    """Returns a new mapping or list, because each belongs to one place."""
    return type(value)() if type(value) in (dict, list) else value


def _find_end(lines: Sequence[str], start: int) -> int:
    """Returns the number of the line after the last item."""
    for at in range(start + 1, len(lines)):
        if lines[at][:1] != " ":
            return at
    return len(lines)


def _is_named(item: Any) -> bool:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return isinstance(metadata, dict) and "name" in metadata
