"""What is wrong with a configuration, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# Enough to recognise a value; a pasted certificate does not fill the screen.
_MAX_CHARACTERS = 80

# Python refuses to write out integers of many thousand digits.
_MAX_BITS = 256


@dataclass(frozen=True, slots=True)
class Problem:
    """One offending field; a path of "" means the document as a whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Problems:
    """Collects what is wrong, so that everything can be told at once."""

    def __init__(self) -> None:
        self._found: dict[Problem, None] = {}

    def add(self, path: str, message: str) -> None:
        self._found[Problem(path, message)] = None

    def add_found(self, found: Iterable[Problem]) -> None:
        """Adds what a check of the values found, bar mere consequences of earlier problems.

        A field that could not be read stands at its default while the rest is checked, so what
        is found at, above or below such a field says nothing about what was written.
        """
        unread = [problem.path for problem in self._found]
        self._found.update(
            dict.fromkeys(
                problem
                for problem in found
                if not any(_overlap(problem.path, path) for path in unread)
            )
        )

    def raise_any(self, source: str) -> None:
        """Raises ConfigError if there is any problem."""
        if self._found:
            raise ConfigError(tuple(self._found), source)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class ConfigError(Exception):
    """A configuration that cannot be used; the text names every problem, one per line."""

    def __init__(self, problems: tuple[Problem, ...], source: str = "<config>") -> None:
        super().__init__(problems, source)
        self.problems = problems
        self.source = source

    def __str__(self) -> str:
        return "\n".join(f"{self.source}: {problem}" for problem in self.problems)


def child(path: str, name: str) -> str:
    """The path of what a name, or a path of its own, means below a path."""
    if not path or not name or name.startswith("["):
        return path + name
    return f"{path}.{name}"


def item(path: str, index: int) -> str:
    """The path of an element of a list."""
    return f"{path}[{index}]"


def shown(value: object) -> str:
    """A value as the file would write it, short enough for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{_shortened(value)}"'
        case int() if value.bit_length() > _MAX_BITS:
            return "an integer out of all range"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case int() | float():
            return str(value)
        case _:
            return f"a {type(value).__name__}"


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"


def _overlap(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return longer.startswith(shorter) and longer[len(shorter) :][:1] in ("", ".", "[")
