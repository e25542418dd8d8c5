"""Allocates devices to the claims of a pod. It searches once for each group of like rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster.arrays import grow_to
from moorage.cluster.devices.groups import LocalGroup, RowGroups, SeenPool, WidePattern
from moorage.cluster.devices.pools import PoolStatus

from .asks import CompiledAsk, CompiledClaim, SearchError
from .constraints import lacks_matching
from .search import MOST_RESULTS, MOST_STEPS, WORK_PER_STEP, DeviceSearch, Pick, SearchTooLongError
from .selectors import MOST_STEPS_OF_ANSWERS, AnswersSpentError, SelectorAnswers

# The work of finding the suitable devices of a pool for a request, in the simple case.
_WORK_PER_ASK = 6

# Beyond so many groups all outcomes are dropped, because many belong to groups without rows.
_MOST_GROUPS = 20_000


class AllocationFound(Enum):
    """The kind of outcome of a search."""

    DEVICES = auto()
    NOTHING = auto()
    #: No devices were found, and some pools contradict themselves.
    INVALID = auto()
    ERROR = auto()


class AllocationOutcome(msgspec.Struct, frozen=True, eq=False):
    """The outcome of a search, for all rows of a group."""

    found: AllocationFound
    picks: tuple[Pick, ...] = ()
    steps: int = 0
    error: str = ""
    #: Whether the error says what it is about. Otherwise the name of the node comes before it.
    names_itself: bool = True


#: The outcome while expressions still have to be evaluated for more devices.
UNFINISHED = AllocationOutcome(
    AllocationFound.ERROR,
    error=(
        f"gave up asking expressions about devices after {MOST_STEPS_OF_ANSWERS} steps, "
        "the next attempt goes on from there"
    ),
    names_itself=False,
)


class ClaimsPlan:
    """Claims that are allocated together, and the outcome for each group of rows."""

    def __init__(self, claims: tuple[CompiledClaim, ...], answers: SelectorAnswers) -> None:
        self.claims = claims
        self._answers = answers
        #: Whether the last search ended before expressions were evaluated for all devices.
        self.is_unfinished = False
        self._is_regular = all(
            claim.is_regular and sum(ask.count for ask in claim.asks()) <= MOST_RESULTS
            for claim in claims
        )
        self._is_plain = self._is_regular and all(claim.is_plain for claim in claims)
        self._outcomes: dict[tuple[LocalGroup, WidePattern], AllocationOutcome] = {}
        self._wide_version = -1

        #: For each number of a group: what was found, how many steps that took, and for which
        #: birth of the number. Only clusters without wide pools use these.
        self._found = np.zeros(1, np.int8)
        self._steps = np.zeros(1, np.int64)
        self._births = np.full(1, -1, np.int64)
        #: The groups of these numbers, and the last answer of `found` with `given` of that time.
        self._groups: RowGroups | None = None
        self._said: tuple[int, NDArray[np.int8]] = -1, self._found

    def __len__(self) -> int:
        """Returns the number of groups whose outcome is known."""
        return len(self._outcomes)

    def found(self, groups: RowGroups, most_steps: int) -> NDArray[np.int8]:
        """Returns what was found, by the number of the group, in a cluster without wide pools."""
        if groups is not self._groups:
            # The same numbers may stand for other groups now.
            self._groups, self._said = groups, (-1, self._found)
            self._births[:] = -1
        if self._said[0] == groups.given:
            return self._said[1]
        count = groups.count
        self._found = grow_to(self._found, count)
        self._steps = grow_to(self._steps, count)
        self._births = grow_to(self._births, count, -1)
        births = groups.births[:count]
        if self._steps[:count].any():
            # The steps of groups without rows do not count.
            empty = np.bincount(groups.local, minlength=count) == 0
            self._steps[:count][empty], self._births[:count][empty] = 0, -1
        with self.limited():
            self._catch_up(groups, np.flatnonzero(self._births[:count] != births), most_steps)
        found = self._found[:count]
        if self.is_unfinished or self._steps[:count].any():
            found = np.where(
                np.cumsum(self._steps[:count]) > most_steps, AllocationFound.ERROR.value, found
            )
            late = self._births[:count] != births
            found = np.where(late, AllocationFound.ERROR.value, found)
        said = found.astype(np.int8)
        if not self.is_unfinished:
            self._said = groups.given, said
        return said

    def _catch_up(self, groups: RowGroups, numbers: NDArray[np.intp], most_steps: int) -> None:
        """Searches for groups without a known outcome, until the steps are spent."""
        for number in numbers.tolist():
            if number and not groups.group(number).rows:
                self._steps[number] = 0
                continue
            outcome = self.outcome(groups, number, 0)
            if outcome is UNFINISHED:
                break
            self._found[number], self._steps[number] = outcome.found.value, outcome.steps
            self._births[number] = groups.births[number]
            if outcome.steps and self._steps[: groups.count].sum() > most_steps:
                break

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Limits the evaluation of expressions to what one decision may spend on it."""
        self.is_unfinished = False
        self._answers.limit(MOST_STEPS_OF_ANSWERS)
        try:
            yield
        finally:
            self._answers.limit(None)

    def outcome_on(self, groups: RowGroups, row: int) -> AllocationOutcome:
        """Returns the outcome for a row."""
        return self.outcome(groups, groups.local.item(row), groups.patterns.item(row))

    def outcome(self, groups: RowGroups, local: int, pattern: int) -> AllocationOutcome:
        """Returns the outcome for the rows with these numbers."""
        if self._wide_version != groups.wide_version or len(self._outcomes) > _MOST_GROUPS:
            self._outcomes.clear()
            self._wide_version = groups.wide_version
        key = groups.group(local), groups.pattern(pattern)
        known = self._outcomes.get(key)
        if known is None:
            try:
                known = self._outcomes[key] = self.search(groups.pools(*key))
            except AnswersSpentError:
                self.is_unfinished = True
                return UNFINISHED
        return known

    def search(self, pools: Sequence[SeenPool]) -> AllocationOutcome:
        """Searches these pools, in this order, and returns the outcome."""
        if self._is_regular and not self._is_plain and _lack_matching(self.claims, pools):
            return _fail(pools, self._count_matching(pools))
        return allocate(self.claims, pools, self._is_plain)

    def _count_matching(self, pools: Sequence[SeenPool]) -> int:
        """Returns the steps that it takes to count devices with the same values."""
        devices = sum(len(view.names) for view, _ in pools)
        constraints = sum(len(claim.constraints) for claim in self.claims)
        return 2 * devices * constraints // WORK_PER_STEP


def allocate(
    claims: Sequence[CompiledClaim], pools: Sequence[SeenPool], is_plain: bool = False
) -> AllocationOutcome:
    """Returns the first devices that satisfy all claims. Errors name claims by `claim_number`."""
    if is_plain:
        asks = sum(len(request.asks) for claim in claims for request in claim.requests)
        steps = _WORK_PER_ASK * asks * len(pools) // WORK_PER_STEP
        picks = _take_first(claims, pools)
        if picks is not None:
            return AllocationOutcome(AllocationFound.DEVICES, picks, steps)
        if _lacks_devices(claims, pools):
            return _fail(pools, steps)
    search = DeviceSearch(claims, pools)
    try:
        found = search.run()
    except SearchError as error:
        return AllocationOutcome(AllocationFound.ERROR, (), search.steps, error.text)
    except SearchTooLongError:
        text = f"gave up trying to allocate devices after {MOST_STEPS} steps"
        return AllocationOutcome(AllocationFound.ERROR, (), search.steps, text, names_itself=False)
    if found is not None:
        return AllocationOutcome(AllocationFound.DEVICES, found, search.steps)
    return _fail(pools, search.steps)


def _lack_matching(claims: Sequence[CompiledClaim], pools: Sequence[SeenPool]) -> bool:
    """Whether a constraint wants more devices with one value than are free. A search would fail."""
    if any(model.is_shared for view, _ in pools for model in view.shape.models):
        return False
    for claim in claims:
        if any(
            each.match_attribute is None and each.distinct_attribute is None
            for each in claim.constraints
        ):
            return False
        if any(ask.masks(view.shape)[1] for ask in claim.asks() for view, _ in pools):
            # The search reports an expression that fails, if it comes to that device.
            return False
    return any(lacks_matching(claim, pools) for claim in claims)


def _fail(pools: Sequence[SeenPool], steps: int) -> AllocationOutcome:
    invalid = any(view.status is PoolStatus.INVALID for view, _ in pools)
    return AllocationOutcome(
        AllocationFound.INVALID if invalid else AllocationFound.NOTHING, (), steps
    )


def _are_plain(pools: Sequence[SeenPool]) -> bool:
    """Whether each device is either free or taken as a whole."""
    return all(view.shape.is_plain and not shares for view, (_, _, shares) in pools)


def _lacks_devices(claims: Sequence[CompiledClaim], pools: Sequence[SeenPool]) -> bool:
    """Whether requests that accept the same devices want more of them than are free."""
    if not _are_plain(pools):
        return False
    wanted: dict[tuple[int, ...], int] = {}
    for claim in claims:
        for ask in claim.asks():
            masks = [ask.masks(view.shape) for view, _ in pools]
            if any(broken for _, broken in masks):
                return False
            free = tuple(
                good & ~state[0] for (good, _), (_, state) in zip(masks, pools, strict=True)
            )
            wanted[free] = wanted.get(free, 0) + ask.count
    return any(count > sum(each.bit_count() for each in free) for free, count in wanted.items())


def _take_first(
    claims: Sequence[CompiledClaim], pools: Sequence[SeenPool]
) -> tuple[Pick, ...] | None:
    """Returns the first free devices for each request in turn; None if a search has to decide."""
    if not _are_plain(pools):
        return None
    used = [state[0] for _, state in pools]
    picks: list[Pick] = []
    for number, claim in enumerate(claims):
        for ask in claim.asks():
            if not _take_for(number, ask, pools, used, picks):
                return None
    return tuple(picks)


def _take_for(
    number: int,
    ask: CompiledAsk,
    pools: Sequence[SeenPool],
    used: list[int],
    picks: list[Pick],
) -> bool:
    missing = ask.count
    for at, (view, _) in enumerate(pools):
        good, broken = ask.masks(view.shape)
        free = (good | broken) & ~used[at]
        while free and missing:
            lowest = free & -free
            if lowest & broken:
                return False
            used[at] |= lowest
            free ^= lowest
            picks.append(Pick(number, ask, at, lowest.bit_length() - 1))
            missing -= 1
        if not missing:
            return True
    return not missing
