"""Searches for devices. It finds the first solution in kube-scheduler's order, with less work.

It tries claims, requests and devices in order, and takes a choice back if nothing after it
succeeds. Two things save work without changing the first solution: a state that failed once is not
tried again, and if a device failed, devices like it are not tried in its place.
The number of steps is bounded. Work that grows with the number of devices, claims, counters or
capacities counts as more than one step.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec

from moorage.cluster.devices.device_use import PoolState
from moorage.cluster.devices.groups import SeenPool
from moorage.cluster.devices.models import DeviceModel
from moorage.cluster.devices.pools import PoolStatus

from .asks import CLAIM, DEVICE, DEVICE_NAME, CompiledAsk, CompiledClaim, Judgement, SearchError
from .capacities import amounts_of
from .constraints import ConstraintState, track

#: The most devices that a claim can have.
MOST_RESULTS = 32

#: The most steps of a search. After them it gives up.
MOST_STEPS = 20_000

#: The units of work in a step. Looking at one device or one number is one unit.
WORK_PER_STEP = 16

# The work of listing a device, and of finding what is left of a capacity.
_WORK_PER_DEVICE, _WORK_PER_CAPACITY = 4, 6


class Pick(msgspec.Struct, frozen=True):
    """A device for a claim: the one at a place of a pool, by the order of the searched pools."""

    claim: int
    ask: CompiledAsk
    pool: int
    place: int
    #: What the claim takes of a device that can be shared, in nano-units.
    amounts: dict[str, int] | None = None


class SearchTooLongError(Exception):
    """The search takes too many steps."""


class Candidate:
    """A device that can be chosen, with its pool and its place there."""

    __slots__ = ("bit", "is_taken", "model", "place", "pool", "taken_amounts")

    def __init__(
        self,
        bit: int,
        pool: int,
        place: int,
        model: DeviceModel,
        is_taken: bool,
        taken_amounts: dict[str, int] | None,
    ) -> None:
        self.bit = bit
        self.pool = pool
        self.place = place
        self.model = model
        self.is_taken = is_taken
        #: What others take of a device that can be shared; None if no claim uses it.
        self.taken_amounts = taken_amounts


class DeviceSearch:
    """One search over the pools that a node sees."""

    def __init__(self, claims: Sequence[CompiledClaim], pools: Sequence[SeenPool]) -> None:
        self._claims = claims
        self._pools = pools
        self._candidates: list[Candidate] = []
        #: Where the candidates of each pool end.
        self._ends: list[int] = []
        for number, (view, state) in enumerate(pools):
            self._list_devices(number, view.shape.models, state)
            self._ends.append(len(self._candidates))
        self._constraints: list[tuple[ConstraintState, ...]] = []
        self._all: dict[CompiledAsk, list[Candidate]] = {}
        #: The devices that each claim has so far, as bits.
        self._chosen = [0] * len(claims)
        self._results = [0] * len(claims)
        #: What is left of the counters of each pool.
        self._left: list[list[int]] = [list(state[1]) for _, state in pools]
        #: What this search takes of devices that can be shared.
        self._shared: dict[int, list[dict[str, int]]] = {}
        self._picks: list[Pick] = []
        self._failed: set[Hashable] = set()
        self._work = _WORK_PER_DEVICE * len(self._candidates)
        #: The work of looking at a device, and at a state of the search.
        self._work_per_look = 1 + len(claims) // 4
        self._work_per_state = sum(map(len, self._left)) + sum(
            1 + 4 * len(claim.constraints) for claim in claims
        )
        #: Whether like devices are skipped: they are equally good unless their order matters.
        self._skips_alike = not any(
            each.distinct_attribute is not None for claim in claims for each in claim.constraints
        )

    @property
    def steps(self) -> int:
        return self._work // WORK_PER_STEP

    def _list_devices(self, pool: int, models: Sequence[DeviceModel], state: PoolState) -> None:
        taken, _, shares = state
        amounts = {place: dict(each) for place, each in shares}
        for place, model in enumerate(models):
            bit = 1 << len(self._candidates)
            is_taken = bool(taken >> place & 1)
            self._candidates.append(
                Candidate(bit, pool, place, model, is_taken, amounts.get(place))
            )

    def run(self) -> tuple[Pick, ...] | None:
        """Returns the devices of all claims; None if there is no solution. Raises SearchError."""
        for number, claim in enumerate(self._claims):
            self._prepare(number, claim)
        try:
            found = self._choose(0, 0, None, 0, 0)
        except RecursionError:
            raise SearchTooLongError from None
        return tuple(self._picks) if found else None

    # Before the search

    def _prepare(self, number: int, claim: CompiledClaim) -> None:
        try:
            least = sum(
                min((self._count(number, ask) for ask in request.asks), default=0)
                for request in claim.requests
            )
            if least > MOST_RESULTS:
                raise SearchError(
                    f"claim {CLAIM}: number of requested devices {least} "
                    f"exceeds the claim limit of {MOST_RESULTS}"
                )
            for at, each in enumerate(claim.constraints):
                if each.match_attribute is None and each.distinct_attribute is None:
                    raise SearchError(
                        f"claim {CLAIM}, constraint #{at}: "
                        "empty constraint (unsupported constraint type?)"
                    )
        except SearchError as error:
            raise _about(number, error) from None
        self._constraints.append(track(claim))

    def _count(self, number: int, ask: CompiledAsk) -> int:
        problem = ask.problem()
        if problem:
            raise SearchError(problem)
        if not ask.wants_all:
            return ask.count
        meant = self._all[ask] = []
        begin = 0
        # The error is about the first pool in which the pool itself or one of its devices is wrong.
        for (view, _), end in zip(self._pools, self._ends, strict=True):
            if view.status is not PoolStatus.USABLE:
                state = "being updated" if view.status is PoolStatus.INCOMPLETE else "invalid"
                raise SearchError(
                    f"claim {CLAIM}, request {ask.own_name}: asks for all devices, "
                    f"but resource pool {'/'.join(view.key)} is currently {state}"
                )
            meant += [
                each for each in self._candidates[begin:end] if self._is_meant(number, ask, each)
            ]
            begin = end
        return len(meant)

    def _is_meant(self, number: int, ask: CompiledAsk, candidate: Candidate) -> bool:
        self._step()
        if self._judge(ask, candidate) is Judgement.NO:
            return False
        taken = candidate.taken_amounts
        if not taken or not self._claims[number].version.leaves_out_full_devices:
            return True
        return self._find_amounts(ask, candidate.model, taken) is not None

    # The search itself

    def _step(self) -> None:
        self._work += WORK_PER_STEP
        if self._work > MOST_STEPS * WORK_PER_STEP:
            raise SearchTooLongError

    def _find_amounts(
        self, ask: CompiledAsk, model: DeviceModel, taken: dict[str, int]
    ) -> dict[str, int] | None:
        self._work += _WORK_PER_CAPACITY * len(model.capacities)
        return amounts_of(ask.amounts, model, taken, ask.capacity_rules)

    def _choose(
        self, claim: int, request: int, ask: CompiledAsk | None, index: int, start: int
    ) -> bool:
        """Chooses all remaining devices, and returns whether that succeeds.

        `ask` is None at the beginning of a request.
        """
        self._step()
        if claim == len(self._claims):
            return True
        requests = self._claims[claim].requests
        if request == len(requests):
            return self._choose(claim + 1, 0, None, 0, 0)
        if ask is None:
            return any(self._choose(claim, request, each, 0, 0) for each in requests[request].asks)
        wanted = len(self._all[ask]) if ask.wants_all else ask.count
        if ask.wants_all and not wanted:
            return False
        if index >= wanted:
            return self._choose(claim, request + 1, None, 0, 0)
        if self._results[claim] + wanted - index > MOST_RESULTS:
            return False
        if ask.wants_all:
            return self._choose_next_of_all(claim, request, ask, index)
        return self._choose_one(claim, request, ask, index, start)

    def _choose_next_of_all(self, claim: int, request: int, ask: CompiledAsk, index: int) -> bool:
        candidate = self._all[ask][index]
        if not self._is_free(ask, claim, candidate):
            return False
        if not self._take(claim, ask, candidate, must=True):
            return False
        if self._choose(claim, request, ask, index + 1, 0):
            return True
        self._give_back(claim, ask, candidate)
        return False

    def _choose_one(
        self, claim: int, request: int, ask: CompiledAsk, index: int, start: int
    ) -> bool:
        here = claim, request, id(ask), index, start, self._state()
        if here in self._failed:
            return False
        alike: set[Hashable] = set()
        for at in range(start, len(self._candidates)):
            candidate = self._candidates[at]
            self._work += self._work_per_look
            kind = self._kind(candidate)
            if kind in alike or not self._is_wanted(claim, ask, candidate):
                continue
            if self._choose(claim, request, ask, index + 1, at + 1):
                return True
            self._give_back(claim, ask, candidate)
            if kind is not None:
                alike.add(kind)
        self._failed.add(here)
        return False

    def _is_wanted(self, claim: int, ask: CompiledAsk, candidate: Candidate) -> bool:
        """Takes a device if it is free and suits, and returns whether it did."""
        if not self._is_free(ask, claim, candidate):
            return False
        self._step()
        return self._suits(claim, ask, candidate) and self._take(claim, ask, candidate, must=False)

    def _suits(self, claim: int, ask: CompiledAsk, candidate: Candidate) -> bool:
        try:
            return self._judge(ask, candidate) is Judgement.YES
        except SearchError as error:
            raise _about(claim, error) from None

    def _judge(self, ask: CompiledAsk, candidate: Candidate) -> Judgement:
        """Judges a device. An error names the device."""
        try:
            return ask.judge(candidate.model)
        except SearchError as error:
            name = self._name(candidate)
            text = error.text.replace(DEVICE_NAME, name.rpartition("/")[2])
            raise SearchError(text.replace(DEVICE, name)) from None

    def _name(self, candidate: Candidate) -> str:
        view, _ = self._pools[candidate.pool]
        return "/".join((*view.key, view.names[candidate.place]))

    def _kind(self, candidate: Candidate) -> Hashable | None:
        """Returns a value that equally good devices share; None if the device is not compared."""
        if not self._skips_alike or candidate.model.is_shared or candidate.taken_amounts:
            return None
        chosen = tuple(bool(each & candidate.bit) for each in self._chosen)
        return candidate.pool, candidate.model, candidate.is_taken, chosen

    def _state(self) -> Hashable:
        shared = tuple(
            (bit, tuple(tuple(sorted(each.items())) for each in amounts))
            for bit, amounts in sorted(self._shared.items())
        )
        limits = tuple(each.state for group in self._constraints for each in group)
        parts = sum(len(each) for amounts in self._shared.values() for each in amounts)
        self._work += self._work_per_state + parts
        return tuple(self._chosen), tuple(map(tuple, self._left)), shared, limits

    def _is_free(self, ask: CompiledAsk, claim: int, candidate: Candidate) -> bool:
        if ask.is_admin:
            return not self._chosen[claim] & candidate.bit
        return not candidate.is_taken and not any(each & candidate.bit for each in self._chosen)

    # Taking devices

    def _take(self, claim: int, ask: CompiledAsk, candidate: Candidate, must: bool) -> bool:
        """Takes a device, unless capacity, counters, taints or constraints forbid it.

        If the device must be taken, a constraint that forbids it raises SearchError, whether or not
        the capacity is enough.
        """
        model = candidate.model
        amounts: dict[str, int] | None = None
        has_room = True
        # Shares may be held of a device that cannot be shared any more.
        if model.is_shared or candidate.taken_amounts:
            amounts = self._find_amounts(ask, model, self._sum_amounts(candidate))
            has_room = amounts is not None
        if not has_room and not must:
            return False
        # Claims that share a device use the counters that its first user took.
        counts = model.counters if not self._has_share(candidate) else ()
        if counts and not self._draw(candidate, -1):
            return False
        if ask.judge(model) is not Judgement.TAINTED and self._constrain(
            claim, ask, candidate, must
        ):
            if has_room:
                self._note_pick(claim, ask, candidate, amounts)
                return True
            self._unconstrain(claim, ask)
        if counts:
            self._draw(candidate, 1)
        return False

    def _note_pick(
        self, claim: int, ask: CompiledAsk, candidate: Candidate, amounts: dict[str, int] | None
    ) -> None:
        if amounts is None or not candidate.model.is_shared:
            amounts = None
            self._chosen[claim] |= candidate.bit
        else:
            self._shared.setdefault(candidate.bit, []).append(amounts)
        self._results[claim] += 1
        self._picks.append(Pick(claim, ask, candidate.pool, candidate.place, amounts))

    def _give_back(self, claim: int, ask: CompiledAsk, candidate: Candidate) -> None:
        self._picks.pop()
        self._results[claim] -= 1
        if candidate.model.is_shared:
            shares = self._shared[candidate.bit]
            shares.pop()
            if not shares:
                del self._shared[candidate.bit]
        else:
            self._chosen[claim] &= ~candidate.bit
        self._unconstrain(claim, ask)
        if candidate.model.counters and not self._has_share(candidate):
            self._draw(candidate, 1)

    def _sum_amounts(self, candidate: Candidate) -> dict[str, int]:
        total = dict(candidate.taken_amounts or {})
        for amounts in self._shared.get(candidate.bit, ()):
            self._work += len(amounts)
            for name, amount in amounts.items():
                total[name] = total.get(name, 0) + amount
        return total

    def _has_share(self, candidate: Candidate) -> bool:
        if not candidate.model.is_shared or candidate.taken_amounts is None:
            return candidate.bit in self._shared
        counts_again = self._claims[0].version.counts_shares_again
        return not counts_again or bool(candidate.model.capacities)

    def _draw(self, candidate: Candidate, sign: int) -> bool:
        """Takes what a device needs from the counters of its pool (-1), or gives it back (1).

        Returns False, and takes nothing, if too little is left.
        """
        left = self._left[candidate.pool]
        self._work += len(left) // 4
        places = self._pools[candidate.pool][0].shape.counter_places
        for counter, value in candidate.model.counters:
            left[places[counter]] += sign * value
        if sign > 0 or min(left) >= 0:
            return True
        self._draw(candidate, 1)
        return False

    def _constrain(self, claim: int, ask: CompiledAsk, candidate: Candidate, must: bool) -> bool:
        constraints = self._constraints[claim]
        self._work += 2 * len(constraints)
        for at, each in enumerate(constraints):
            if each.add(ask, candidate.model):
                continue
            for earlier in constraints[:at]:
                earlier.remove(ask)
            if must:
                text = (
                    f"claim {CLAIM}, request {ask.own_name}: cannot add device "
                    f"{self._name(candidate)} because a claim constraint would not be satisfied"
                )
                raise _about(claim, SearchError(text))
            return False
        return True

    def _unconstrain(self, claim: int, ask: CompiledAsk) -> None:
        for each in self._constraints[claim]:
            each.remove(ask)


def _about(claim: int, error: SearchError) -> SearchError:
    """Returns the error with the number of its claim in place of `CLAIM`."""
    return SearchError(error.text.replace(CLAIM, claim_number(claim)))


def claim_number(claim: int) -> str:
    """Returns what stands for the claim of that number in an error."""
    return f"\0{claim}\0"
