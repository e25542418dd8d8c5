"""Advice: what a plugin tells the owner of a pod whose nodes its filter rejects.

Advice plays no part in decisions. `engine.explain` asks for it, tries it, and shows what helps.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, View
from moorage.objects.pod import Pod

from .attempt import Failed
from .edits import Edit, PodAt, pod_at
from .plugin import F, Plugin
from .status import check_items, check_text

if TYPE_CHECKING:
    from .profile import Profile

E = TypeVar("E", bound=Edit)
RowNumbers = NDArray[np.intp]
Amounts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Advice:
    """A problem of a pod on some nodes, and edits that may help there.

    Without edits it only states the problem. A problem that says more than the reason is worth
    most.
    """

    problem: str
    edits: tuple[Edit, ...] = ()
    #: Some of the pods that stand in the way.
    blockers: tuple[PodAt, ...] = ()
    #: What stands in the way, in a word by which tools can tell suggestions apart.
    kind: str = "plugin"

    def __post_init__(self) -> None:
        check_text("Advice.problem", self.problem)
        check_items("Advice.edits", self.edits, Edit)
        check_items("Advice.blockers", self.blockers, PodAt)
        check_text("Advice.kind", self.kind)


class Advise(Plugin, Generic[F]):
    """Says what would help where the plugin rejects nodes.

    It needs no configuration: a profile with the plugin's filter has its advice.
    """

    @abstractmethod
    def advise(
        self, pod: Pod, prepared: F | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterable[Advice]:
        """Yields advice about rows that the plugin rejects, the most helpful first.

        `prepared` is what `filter` gets. It is None if `pre_filter` rejected the pod as a whole;
        then `rows` are all rows. Advice is tried before it is shown, so it may be a guess.
        """


@dataclass(frozen=True, slots=True)
class EvictionAdvice:
    """A change that would let a post-filter make room by evicting pods, and the nodes."""

    advice: Advice
    #: The nodes on which there would be room.
    rows: RowNumbers


class AdviseEviction(Plugin):
    """Says what would let the plugin's post-filter help a pod that it could not help."""

    @abstractmethod
    def advise_eviction(
        self, pod: Pod, failed: Failed, nodes: View, profile: Profile
    ) -> EvictionAdvice | None:
        """Returns the smallest change of the pod, already tried; None if nothing helps."""


# Which nodes, and which pods

# Enough blockers to see what they are.
MOST_BLOCKERS = 10


def name_nodes(rows: NDArray[np.intp], nodes: View) -> str:
    """Says how many nodes there are, or names the only one."""
    if len(rows) == 1:
        return f"node {nodes.name(int(rows[0]))}"
    return f"{len(rows)} nodes"


def find_pods(
    rows: NDArray[np.intp],
    nodes: View,
    wanted: Callable[[Pod], bool],
    most: int = MOST_BLOCKERS,
) -> tuple[PodAt, ...]:
    """Returns wanted pods on some rows, up to a number."""
    found: list[PodAt] = []
    for row in rows.tolist():
        name = nodes.name(row)
        for pod in nodes.pods(row).values():
            if wanted(pod):
                found.append(pod_at(pod, name))
                if len(found) == most:
                    return tuple(found)
    return tuple(found)


# Nodes that are alike in what keeps a pod off them, so that there is one advice for all

# Of very different nodes, so many groups are worth a try: the largest ones.
MOST_GROUPS = 6

# To change more at once is no near miss.
MOST_EDITS = 3


def group_equal_columns(flags: NDArray[np.bool_]) -> list[RowNumbers]:
    """Groups the positions of equal columns of bool[flag, position]."""
    if not flags.size:
        return [np.arange(flags.shape[1])] if flags.shape[1] else []
    packed = np.ascontiguousarray(np.packbits(flags, axis=0).T)
    whole = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, codes = np.unique(whole, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    begins = np.flatnonzero(np.diff(codes[order])) + 1
    return np.split(order, begins)


def group_by_failures(
    flags: Mapping[E, Mask], rows: RowNumbers
) -> Iterator[tuple[tuple[E, ...], RowNumbers]]:
    """Groups rows by what fails there, given the rows where each mendable thing fails.

    The largest groups come first; where too much fails, nothing is proposed.
    """
    edits = tuple(flags)
    if not edits:
        return
    failed = np.array([flags[edit] for edit in edits], np.bool_)
    groups = sorted(group_equal_columns(failed), key=len, reverse=True)
    for places in groups[:MOST_GROUPS]:
        column = failed[:, places[0]]
        wrong = tuple(edit for edit, fails in zip(edits, column, strict=True) if fails)
        if 0 < len(wrong) <= MOST_EDITS:
            yield wrong, rows[places]


# Amounts that are short: the nearest miss of like nodes, and what would do for more of them

# A pod that must ask for less than half would be another pod.
_FAR = 0.5


@dataclass(frozen=True, slots=True)
class NearMiss:
    """The largest amounts that some rows of a group of like rows lack."""

    #: int64[amount]
    short: Amounts
    rows: RowNumbers
    group: RowNumbers
    #: Whether exactly that is short on all of the rows.
    is_exact: bool
    #: How much less to ask for, as shares of what was asked, summed.
    share: float

    @property
    def is_nearest_of_many(self) -> bool:
        return len(self.rows) < len(self.group)


def near_misses(
    short: Amounts, rows: RowNumbers, asked: Amounts, like: Amounts | None = None
) -> list[NearMiss]:
    """Yields the nearest miss of every group, the nearest of all first; then misses for more rows.

    `short` is int64[amount, row], `asked` has one number per amount. Rows of a group lack the same
    amounts, more or less of each, and have equal columns in `like`.
    """
    keys = (short > 0).astype(np.int64)
    if like is not None:
        keys = np.concatenate((keys, like))
    found = [list(_of_group(short[:, places], rows[places], asked)) for places in _groups(keys)]
    nearest = sorted((each[0] for each in found if each), key=lambda miss: miss.share)
    return [*nearest, *(miss for each in found for miss in each[1:])]


def _groups(keys: Amounts) -> list[RowNumbers]:
    """Returns the positions of equal columns, for the largest groups."""
    _, codes = np.unique(keys, axis=1, return_inverse=True)
    order = np.argsort(codes.ravel(), kind="stable")
    begins = np.flatnonzero(np.diff(codes.ravel()[order])) + 1
    groups = [each for each in np.split(order, begins) if len(each)]
    return sorted(groups, key=len, reverse=True)[:MOST_GROUPS]


def _of_group(short: Amounts, group: RowNumbers, asked: Amounts) -> Iterator[NearMiss]:
    """Yields the nearest miss, and those for half and for all of the rows unless they are far."""
    distinct = np.unique(short, axis=1)
    distinct = distinct[:, distinct.any(axis=0)]
    shares = (distinct / np.maximum(asked, 1)[:, np.newaxis]).sum(axis=0)
    order = np.argsort(shares, kind="stable").tolist()
    for at in dict.fromkeys((*order[:1], *order[len(order) // 2 :][:1], *order[-1:])):
        amounts, share = distinct[:, at], float(shares[at])
        if at == order[0] or (amounts <= asked * _FAR).all():
            within = (short <= amounts[:, np.newaxis]).all(axis=0)
            is_exact = bool((short[:, within] == amounts[:, np.newaxis]).all())
            yield NearMiss(amounts, group[within], group, is_exact, share)
