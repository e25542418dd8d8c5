"""Rejections and errors of plugins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isnan

from moorage.documents.errors import MoorageError

#: Tells of a row, given its number.
Describe = Callable[[int], str]


class Code(StrEnum):
    """The kind of a rejection."""

    #: Evicting other pods might help.
    UNSCHEDULABLE = "Unschedulable"
    #: Evicting other pods cannot help.
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    #: Something else must happen first; nothing is wrong with the pod.
    PENDING = "Pending"
    #: The plugin broke.
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a node does not suit a pod."""

    text: str
    code: Code = Code.UNSCHEDULABLE

    def __post_init__(self) -> None:
        check_text("Reason.text", self.text)
        if self.code is not Code.UNSCHEDULABLE and self.code is not Code.UNRESOLVABLE:
            raise TypeError(f"Reason.code is {self.code!r}, expected UNSCHEDULABLE or UNRESOLVABLE")


@dataclass(frozen=True, slots=True)
class Rejected:
    """A rejection of the pod as a whole, on whichever node."""

    code: Code
    reasons: tuple[str, ...]

    def __post_init__(self) -> None:
        check_code("Rejected.code", self.code)
        check_texts("Rejected.reasons", self.reasons)

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)


def unresolvable(*reasons: str) -> Rejected:
    """Makes a rejection that evicting other pods cannot change."""
    return Rejected(Code.UNRESOLVABLE, reasons)


class PluginError(MoorageError):
    """A cycle that cannot be completed: a plugin failed, or met a state that it must not guess."""

    def __init__(self, message: str, plugin: str = "") -> None:
        super().__init__(message)
        #: The plugin that broke, if it is known.
        self.plugin = plugin


class BrokenRowsError(PluginError):
    """A plugin failed on some rows. The message is that of the first one visited."""

    def __init__(self, what: str, plugin: str, rows: Sequence[int], describe: Describe) -> None:
        super().__init__(f"{what}: {describe(rows[0])}", plugin)
        self._what = what
        self._describe = describe
        self.rows = rows

    def on(self, row: int) -> PluginError:
        """Returns the error of one row."""
        return PluginError(f"{self._what}: {self._describe(row)}", self.plugin)


# Plugins make the values above. What they put in is checked at once, so that the error points to
# the plugin's own line.


def check_text(field: str, value: object) -> None:
    """Raises unless the value is text that can be written to an API server."""
    if not isinstance(value, str):
        raise TypeError(f"{field} is {type(value).__name__}, expected str")
    if not value.isascii():
        # Half a surrogate pair raises here.
        value.encode()


def check_texts(field: str, values: object) -> None:
    """Raises unless the value is a tuple of texts."""
    if not isinstance(values, tuple):
        raise TypeError(f"{field} is {type(values).__name__}, expected a tuple of str")
    for value in values:
        check_text(field, value)


def check_items(field: str, values: object, kind: type) -> None:
    """Raises unless the value is a tuple of things of that kind."""
    if not isinstance(values, tuple):
        raise TypeError(f"{field} is {type(values).__name__}, expected a tuple")
    for value in values:
        if not isinstance(value, kind):
            raise TypeError(f"{field} has {type(value).__name__}, expected {kind.__name__}")


def check_code(field: str, value: object) -> None:
    """Raises unless the value is a Code."""
    if not isinstance(value, Code):
        raise TypeError(f"{field} is {value!r}, expected a Code")


def check_seconds(field: str, value: object) -> None:
    """Raises unless the value is a number of seconds."""
    if not isinstance(value, int | float) or isnan(value):
        raise TypeError(f"{field} is {value!r}, expected a number of seconds")
