"""Tables of functions: by name, then by the types of the arguments or by how many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

#: Takes the meter and the arguments; the target of a method comes first.
Run = Callable[..., Any]
Overloads = dict[tuple[type, ...] | int, Run]


class Comparable(Protocol):
    """A value that says whether it is smaller (-1), equal (0) or larger (1) than another."""

    def compare(self, other: Any) -> int: ...


class FunctionTable(dict[str, Overloads]):
    """The functions of one module."""

    def takes(self, name: str, *types: type) -> Callable[[Run], Run]:
        """Declares what is called for arguments of these very types."""
        return lambda run: self.setdefault(name, {}).setdefault(types, run)

    def takes_any(self, name: str, arity: int) -> Callable[[Run], Run]:
        """Declares what is called for this many arguments whose types have no overload."""
        return lambda run: self.setdefault(name, {}).setdefault(arity, run)

    def add_comparisons(self, kind: type[Comparable]) -> None:
        """Declares the functions that compare two values of a type."""
        self.takes("isGreaterThan", kind, kind)(lambda _, left, right: left.compare(right) > 0)
        self.takes("isLessThan", kind, kind)(lambda _, left, right: left.compare(right) < 0)
        self.takes("compareTo", kind, kind)(lambda _, left, right: left.compare(right))
