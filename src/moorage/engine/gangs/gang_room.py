"""Counts how many members of a gang find room: in each domain, in all, and with some help."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes
from moorage.framework.edits import AddToleration
from moorage.framework.profile import Profile
from moorage.objects.placement_rules import CORDONED
from moorage.objects.pod import Pod

from .domain_counts import are_alike, is_countable
from .group_result import Domain
from .member_fits import count_fits

Fits = NDArray[np.int64]


class DomainRoom(msgspec.Struct, frozen=True, rename="camel"):
    """A domain and how many members it takes."""

    name: str
    nodes: int
    room: int


class GangRoom(msgspec.Struct, frozen=True, rename="camel"):
    """How many members find room now, and how many would with some help."""

    #: How many more members must find a node.
    needed: int
    #: The domains in one of which all must go, the roomiest first; one without a name if anywhere.
    domains: tuple[DomainRoom, ...]
    #: How many members find room if domains do not matter.
    anywhere: int
    #: Whether this was counted. Else members were tried, and those that wait are the most it tells.
    is_counted: bool = True
    #: How many cordoned nodes of the roomiest domain would take members, and how many of them.
    cordoned_nodes: int = 0
    cordoned_room: int = 0
    #: The domain that is roomiest without all pods of lower priority; None if that is not known.
    by_eviction: DomainRoom | None = None

    @property
    def best(self) -> DomainRoom:
        return self.domains[0]

    @property
    def short(self) -> int:
        """How many members are left over in the roomiest domain."""
        return max(0, self.needed - self.best.room)

    def spread(self) -> tuple[str, ...]:
        """Returns the fewest domains that take the gang together; none if all of them do not."""
        names: list[str] = []
        left = self.needed
        for domain in self.domains:
            if left <= 0:
                break
            names.append(domain.name)
            left -= domain.room
        return tuple(names) if left <= 0 else ()


def count_room(
    members: Sequence[Pod], domains: Sequence[Domain], needed: int, profile: Profile, nodes: Nodes
) -> GangRoom | None:
    """Counts the room for like members that depend on resources only; None for others."""
    pod = members[0]
    if not are_alike(members, profile, nodes) or not is_countable(pod, profile, nodes):
        return None
    fits = count_fits(pod, profile, nodes)
    if fits is None:
        return None
    rooms = [(_sum(fits, domain), domain) for domain in domains]
    rooms.sort(key=lambda each: -each[0])
    cordoned = _count_cordoned(pod, rooms[0][1], profile, nodes)
    return GangRoom(
        needed,
        tuple(DomainRoom(each.name, count_nodes(each, nodes), room) for room, each in rooms),
        int(fits.sum()),
        cordoned_nodes=int(np.count_nonzero(cordoned)),
        cordoned_room=int(cordoned.sum()),
    )


def count_nodes(domain: Domain, nodes: Nodes) -> int:
    return len(nodes) if domain.rows is None else len(domain.rows)


def _sum(fits: Fits, domain: Domain) -> int:
    return int(fits.sum() if domain.rows is None else fits[domain.rows].sum())


def _count_cordoned(pod: Pod, domain: Domain, profile: Profile, nodes: Nodes) -> Fits:
    """Returns how many members each cordoned row of a domain would take if it were uncordoned."""
    rows = nodes.rows if domain.rows is None else domain.rows
    rows = rows[nodes.unschedulable[rows]]
    if not len(rows):
        return np.zeros(0, np.int64)
    # To have the taint tolerated means the same as not to have it.
    fits = count_fits(AddToleration.of(CORDONED).apply(pod), profile, nodes)
    return np.zeros(0, np.int64) if fits is None else fits[rows]
