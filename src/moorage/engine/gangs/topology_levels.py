"""Levels of topology that a group prefers: one domain of each if it fits, else as few as possible.

The levels are node labels from wide to narrow, such as block, rack, host. Members are counted if
they depend on resources only, else tried. If this finds no place, the group is placed without
levels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes
from moorage.cluster.labels import ABSENT
from moorage.framework.status import PluginError
from moorage.objects.pod import Pod

from . import topology
from .domain_counts import are_alike, is_countable
from .group_cycle import EVERYWHERE, GroupCycle, progress
from .group_result import Domain, GroupResult, GroupStatus, MemberResult
from .member_fits import count_fits

RowNumbers = NDArray[np.intp]

# So many domains are tried for members that cannot be counted.
_MOST_TRIED = 64

# By which labels and annotations controllers number the pods that they make, the slowest first.
_RANKS = (
    "jobset.sigs.k8s.io/job-index",
    "leaderworkerset.sigs.k8s.io/group-index",
    "batch.kubernetes.io/job-completion-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "apps.kubernetes.io/pod-index",
)


def place_by_levels(cycle: GroupCycle) -> GroupResult | None:
    """Places a group as its levels say; else returns None and undoes all."""
    try:
        return _LevelPlacement(cycle).place()
    except (PluginError, _TooMany):
        cycle.trial.roll_back()
        return None


def rank_of(pod: Pod) -> tuple[int, ...]:
    """Returns the rank of a pod in its job; pods without one come first."""
    found = (pod.labels.get(key) or pod.annotations.get(key) or "" for key in _RANKS)
    return tuple(int(text) if text.isdecimal() and len(text) < 10 else -1 for text in found)


class _TooMany(Exception):
    """Too many domains would have to be tried."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows that take that many of the members, in sequence."""

    rows: RowNumbers
    count: int


@dataclass(slots=True)
class _MemberShares:
    """How members are divided among domains."""

    parts: list[_Part] = field(default_factory=list)
    #: How many domains of each level are used, the widest level first.
    used: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)


class _LevelPlacement:
    """A group that prefers some levels."""

    def __init__(self, cycle: GroupCycle) -> None:
        self._cycle = cycle
        self._keys = cycle.group.preferred_keys
        self._nodes: Nodes = cycle.trial.cluster.nodes
        # Neighbours by number are placed one after the other, and so side by side.
        self._members = sorted(cycle.members, key=rank_of)
        self._fits = self._count()
        self._tried = 0
        placed = self._nodes.groups.placed(cycle.group.group_key).values()
        self._scheduled = len(placed)
        rows = [row for pod in placed if (row := self._nodes.row(pod.node_name)) is not None]
        #: The rows of members that have a node, which draw the others near.
        self._taken = np.array(rows, np.intp)

    def _count(self) -> NDArray[np.int64] | None:
        members, profile = self._members, self._cycle.trial.profile
        if not is_countable(members[0], profile, self._nodes):
            return None
        if not are_alike(members, profile, self._nodes):
            return None
        return count_fits(members[0], profile, self._nodes)

    def place(self) -> GroupResult | None:
        domains = self._find_domains()
        if isinstance(domains, GroupStatus):
            return None
        needed = max(1, self._cycle.group.min_count - self._scheduled)
        found: list[tuple[tuple[object, ...], Domain, _MemberShares]] = []
        for number, domain in enumerate(domains):
            rows = self._nodes.rows if domain.rows is None else domain.rows
            room = self._room(rows)
            if min(room, len(self._members)) < needed:
                continue
            shares = self._share(rows, min(room, len(self._members)), self._keys)
            order = (-shares.count, shares.used, room, number)
            found.append((order, domain, shares))
        if not found:
            return None
        _, domain, shares = min(found, key=lambda each: each[0])
        return self._carry_out(domain, shares)

    def _find_domains(self) -> Sequence[Domain] | GroupStatus:
        if not self._cycle.with_topology:
            return [EVERYWHERE]
        return topology.find_domains(self._cycle.group, self._nodes)

    # Sharing out

    def _room(self, rows: RowNumbers) -> int:
        """Returns how many of the members some rows take."""
        if self._fits is not None:
            return int(self._fits[rows].sum())
        self._tried += 1
        if self._tried > _MOST_TRIED or self._cycle.trial.is_spent:
            raise _TooMany
        mark = self._cycle.trial.mark()
        placed = sum(bool(each.node_name) for each in self._try(_Part(rows, len(self._members)), 0))
        self._cycle.trial.roll_back(mark)
        return placed

    def _share(self, rows: RowNumbers, count: int, keys: Sequence[str]) -> _MemberShares:
        """Divides that many members among as few domains of each level as possible."""
        if not keys:
            return _MemberShares([_Part(rows, count)])
        inner = [
            self._share(part.rows, part.count, keys[1:])
            for part in self._choose(keys[0], rows, count)
        ]
        used = [sum(each) for each in zip(*(shares.used for shares in inner), strict=True)]
        parts = [part for shares in inner for part in shares.parts]
        return _MemberShares(parts, (len(inner), *used))

    def _number(self, key: str, rows: RowNumbers) -> RowNumbers:
        """Numbers the domain of each row by name; rows without the label are the last domain."""
        column = self._nodes.label(key)
        codes, numbers = np.unique(column.codes[rows], return_inverse=True)
        values = column.vocabulary.values
        names = [(code == ABSENT, "" if code == ABSENT else values[code]) for code in codes]
        places = np.empty(len(codes), np.intp)
        places[sorted(range(len(codes)), key=names.__getitem__)] = np.arange(len(codes))
        return places[numbers]

    def _choose(self, key: str, rows: RowNumbers, count: int) -> Iterator[_Part]:
        """Returns the fewest domains that take that many members, those with running ones first."""
        numbers = self._number(key, rows)
        rooms = self._rooms(numbers, rows)
        sizes = np.bincount(numbers)
        near = np.bincount(numbers, np.isin(rows, self._taken), len(rooms))
        order = np.lexsort((-rooms, -near))
        order = order[rooms[order] > 0]
        # The most that any domain from here on takes.
        most = np.maximum.accumulate(rooms[order][::-1])[::-1]
        for at, domain in enumerate(order.tolist()):
            if most[at] >= count:
                # One is enough: the smallest that is. Members that are tried tell no more room than
                # they take.
                left = order[at:][rooms[order[at:]] >= count]
                smallest = np.lexsort((left, sizes[left], rooms[left], -near[left]))[0]
                domain = int(left[smallest])
            here = min(count, int(rooms[domain]))
            yield _Part(rows[numbers == domain], here)
            count -= here
            if count <= 0:
                return

    def _rooms(self, numbers: RowNumbers, rows: RowNumbers) -> NDArray[np.int64]:
        """Returns how many members each domain takes."""
        if self._fits is not None:
            return np.bincount(numbers, self._fits[rows]).astype(np.int64)
        domains = range(int(numbers.max(initial=-1)) + 1)
        return np.array([self._room(rows[numbers == each]) for each in domains], np.int64)

    # Placing

    def _carry_out(self, domain: Domain, shares: _MemberShares) -> GroupResult | None:
        cycle = self._cycle
        mark = cycle.trial.mark()
        members: list[MemberResult] = []
        for part in shares.parts:
            members += self._try(part, len(members))
        # Members that were not counted, or found less room than was counted, go anywhere.
        left = [each.pod for each in members if not each.node_name]
        left += self._members[len(members) :]
        members = [each for each in members if each.node_name]
        members += [cycle.try_member(pod, domain) for pod in left]
        placed = sum(bool(each.node_name) for each in members)
        status = progress(cycle.group, self._scheduled + placed, 0)
        result = GroupResult(status, members, bool(placed), domain)
        if not result.is_success or not placed:
            cycle.trial.roll_back(mark)
            return None
        result.spread = self._count_domains(result)
        return result

    def _try(self, part: _Part, first: int) -> list[MemberResult]:
        """Places members from one on, as many as possible."""
        domain = Domain("", part.rows)
        pods = self._members[first : first + part.count]
        return [self._cycle.try_member(pod, domain) for pod in pods]

    def _count_domains(self, result: GroupResult) -> dict[str, int]:
        """Counts how many domains of each level the group is in."""
        found: dict[str, int] = {}
        names = [each.node_name for each in result.placed]
        rows = [row for name in names if (row := self._nodes.row(name)) is not None]
        for key in self._keys:
            codes = self._nodes.label(key).codes[np.array([*rows, *self._taken], np.intp)]
            found[key] = len(Counter(codes.tolist()))
        return found
