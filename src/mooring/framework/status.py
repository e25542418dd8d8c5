"""How a plugin says no."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """What kind of no it is."""

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


@dataclass(frozen=True, slots=True)
class Rejected:
    """A no to the pod as a whole, whichever node."""

    code: Code
    reasons: tuple[str, ...]

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)


def unresolvable(*reasons: str) -> Rejected:
    """A no that evicting other pods cannot change."""
    return Rejected(Code.UNRESOLVABLE, reasons)


class PluginError(Exception):
    """A cycle that cannot be completed: a plugin broke or met something it must not guess about."""
