"""Tables of functions: by name, then by the types of the arguments or by how many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Takes the meter and the arguments; the target of a method comes first.
Run = Callable[..., Any]
Overloads = dict[tuple[type, ...] | int, Run]


class FunctionTable(dict[str, Overloads]):
    """The functions of one module."""

    def takes(self, name: str, *types: type) -> Callable[[Run], Run]:
        """Declares what is called for arguments of these very types."""
        return lambda run: self.setdefault(name, {}).setdefault(types, run)

    def takes_any(self, name: str, arity: int) -> Callable[[Run], Run]:
        """Declares what is called for this many arguments whose types have no overload."""
        return lambda run: self.setdefault(name, {}).setdefault(arity, run)
