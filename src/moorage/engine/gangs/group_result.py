"""The result of trying to place a group: the status of the group and of each member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.engine.cycle import Found
from moorage.engine.diagnosis import Failure
from moorage.framework.attempt import Failed
from moorage.objects.pod import Pod

#: What is said of a group whatever the reason.
GROUP_UNSCHEDULABLE = "pod group is unschedulable"


#: How an attempt to place a group ended; "Wait" means that members are left to try.
GroupCode = Literal["Success", "Wait", "Unschedulable", "Error"]


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """How an attempt ended, and why, in kube-scheduler's words."""

    code: GroupCode
    reasons: tuple[str, ...] = ()
    #: What is said before the reasons, and in their place where only one thing is quoted.
    headline: str = ""

    @property
    def message(self) -> str:
        return ", ".join((self.headline, *self.reasons) if self.headline else self.reasons)

    @property
    def quote(self) -> str:
        """Returns its text for use in another message."""
        return self.headline or self.message

    def followed_by(self, reason: str) -> GroupStatus:
        return replace(self, reasons=(*self.reasons, reason)) if reason else self


SUCCESS = GroupStatus("Success")
WAITING = GroupStatus("Wait")


def unschedulable(*reasons: str, headline: str = GROUP_UNSCHEDULABLE) -> GroupStatus:
    return GroupStatus("Unschedulable", reasons, headline)


def error(message: str) -> GroupStatus:
    return GroupStatus("Error", (message,))


class MemberResult(msgspec.Struct, frozen=True, gc=False):
    """The result for one member after the members before it were placed."""

    pod: Pod
    #: Empty if no node was found.
    node_name: str = ""
    outcome: Found | Failed | None = None
    #: Why the member was not placed.
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Domain:
    """Nodes among which all members must find a place."""

    name: str
    #: None is all nodes.
    rows: NDArray[np.intp] | None = None


class GroupResult(msgspec.Struct, eq=False):
    """The result of an attempt on one set of nodes."""

    status: GroupStatus
    #: Those that were tried, in order.
    members: list[MemberResult] = []
    has_placed: bool = False
    domain: Domain | None = None
    #: By plugin, where several domains were weighed against each other.
    scores: Mapping[str, int] | None = None
    #: What came of it in each domain that was tried.
    tried: list[GroupResult] = []

    @property
    def is_success(self) -> bool:
        return self.status.code == "Success"

    @property
    def placed(self) -> list[MemberResult]:
        return [each for each in self.members if each.node_name]

    @property
    def score(self) -> int:
        return sum((self.scores or {}).values())
