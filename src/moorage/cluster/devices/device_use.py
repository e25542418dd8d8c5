"""Counts the devices that claims hold, and how much they hold of shared ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moorage.objects.resource_claim import DeviceResult

from .models import PoolShape
from .pools import PoolKey, PoolView

#: The devices of a pool that are in use, as a node sees them: a bit for each device that is taken;
#: how much of each counter is left; and by position the amounts taken of each shared device in use.
PoolState = tuple[int, tuple[int, ...], tuple[tuple[int, tuple[tuple[str, int], ...]], ...]]

UNUSED: PoolState = (0, (), ())


class DeviceHold:
    """What claims hold of one device."""

    __slots__ = ("amounts", "shares", "taken")

    def __init__(self) -> None:
        #: How many claims hold all of it: at most one, unless other schedulers gave it to a second.
        self.taken = 0
        self.shares = 0
        #: How much the shares take of each capacity.
        self.amounts: dict[str, int] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceHold) and self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]

    def _values(self) -> tuple[int, int, dict[str, int]]:
        return self.taken, self.shares, {k: v for k, v in self.amounts.items() if v}

    def count(self, result: DeviceResult, amount: int) -> None:
        """Adds (1) or subtracts (-1) what a claim holds of the device."""
        if result.share_id is None:
            self.taken += amount
            return
        self.shares += amount
        for name, value in (result.consumed_capacity or {}).items():
            self.amounts[name] = self.amounts.get(name, 0) + amount * int(value)

    def copy(self) -> DeviceHold:
        same = DeviceHold()
        same.taken, same.shares, same.amounts = self.taken, self.shares, dict(self.amounts)
        return same

    @property
    def is_free(self) -> bool:
        return not self.taken and not self.shares


class DeviceUse:
    """What claims hold of all devices, whether it is written or only decided."""

    def __init__(self) -> None:
        self._pools: dict[PoolKey, dict[str, DeviceHold]] = {}

    def held(self, key: PoolKey) -> Mapping[str, DeviceHold]:
        """Returns the devices of a pool that are in use, by name."""
        return self._pools.get(key, {})

    def count(self, results: Iterable[DeviceResult], amount: int) -> None:
        """Adds (1) or subtracts (-1) what a claim holds."""
        for result in results:
            if result.admin_access:
                continue
            key = result.driver, result.pool
            pool = self._pools.get(key)
            if pool is None:
                pool = self._pools[key] = {}
            held = pool.get(result.device)
            if held is None:
                held = pool[result.device] = DeviceHold()
            held.count(result, amount)
            if held.is_free:
                del pool[result.device]
                if not pool:
                    del self._pools[key]

    def without(self, results: Sequence[DeviceResult]) -> DeviceUse:
        """Returns what would be held of the pools of these devices if claims gave them back."""
        left = DeviceUse()
        for each in results:
            key = each.driver, each.pool
            if key not in left._pools:
                left._pools[key] = {name: hold.copy() for name, hold in self.held(key).items()}
        left.count(results, -1)
        return left

    def state(self, view: PoolView) -> PoolState:
        """Returns what is in use of a pool, as a node sees it."""
        held = self._pools.get(view.key)
        if view.shape.is_plain and not held:
            return UNUSED
        if not held:
            return 0, tuple(value for _, value in view.shape.counters), ()
        left = () if view.shape.is_plain else _subtract(view, view.shape, held)
        return _make_mask(view, held), left, _list_shares(view, held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceUse) and self._pools == other._pools

    __hash__ = None  # type: ignore[assignment]


def _make_mask(view: PoolView, held: Mapping[str, DeviceHold]) -> int:
    mask = 0
    places = view.places
    for name, each in held.items():
        at = places.get(name)
        if at is not None and each.taken:
            mask |= 1 << at
    return mask


def _list_shares(
    view: PoolView, held: Mapping[str, DeviceHold]
) -> tuple[tuple[int, tuple[tuple[str, int], ...]], ...]:
    """Returns what is taken of each device of which shares are held, by its position.

    A device that cannot be shared any more may be among them: its driver changed it.
    """
    shared = [
        (view.places[name], each)
        for name, each in held.items()
        if each.shares and name in view.places
    ]
    shared.sort(key=lambda pair: pair[0])
    return tuple(
        (at, tuple(sorted((k, v) for k, v in each.amounts.items() if v))) for at, each in shared
    )


def _subtract(view: PoolView, shape: PoolShape, held: Mapping[str, DeviceHold]) -> tuple[int, ...]:
    """Returns what is left of each counter; below 0 if other schedulers gave too much away."""
    left = [value for _, value in shape.counters]
    if left:
        for name in held:
            for counter, value in view.pool.consumption(name):
                at = shape.counter_places.get(counter)
                if at is not None:
                    left[at] -= value
    return tuple(left)
