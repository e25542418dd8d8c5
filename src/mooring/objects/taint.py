"""Taints repel pods; tolerations accept taints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from .meta import Wire

TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]

# The number format of Lt and Gt: no plus sign, no leading zeros.
_PLAIN_INT = re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII)


class Taint(Wire, frozen=True):
    """A mark on a node that repels pods which do not tolerate it."""

    key: str
    effect: TaintEffect
    value: str = ""


#: The taint of a cordoned node.
CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class Toleration(Wire, frozen=True):
    """A pod's consent to taints of a kind."""

    key: str = ""
    operator: Literal["", "Equal", "Exists", "Lt", "Gt"] = ""
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""

    def tolerates(self, taint: Taint, *, compares: bool = False) -> bool:
        """Whether this accepts the taint; `compares` lets Lt and Gt compare numbers."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "" | "Equal":
                return self.value == taint.value
            case "Exists":
                return True
            case "Lt" | "Gt":
                return compares and self._compares(taint.value)

    def _compares(self, taint_value: str) -> bool:
        ours, theirs = _plain_int(self.value), _plain_int(taint_value)
        if ours is None or theirs is None:
            return False
        return theirs < ours if self.operator == "Lt" else theirs > ours


def tolerated(taint: Taint, tolerations: Iterable[Toleration], *, compares: bool = False) -> bool:
    """Whether any toleration accepts the taint."""
    return any(each.tolerates(taint, compares=compares) for each in tolerations)


def _plain_int(text: str) -> int | None:
    if not _PLAIN_INT.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
