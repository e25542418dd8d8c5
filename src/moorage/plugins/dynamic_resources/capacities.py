"""How much a request takes of the capacities of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.cluster.devices.models import Capacity, DeviceModel
from moorage.objects.device import CapacityPolicy, CapacityRange
from moorage.objects.quantity import (
    MAX_INT64,
    NANOS_PER_MILLI,
    NANOS_PER_UNIT,
    format_quantity,
)

# kube-scheduler's words for an amount that 64 bits do not hold.
_ODD = "capacity request cannot be represented in the device's range arithmetic"


class OddCapacityError(Exception):
    """A capacity is negative, or a request for it cannot be rounded up."""


@dataclass(frozen=True, slots=True)
class CapacityRules:
    """How requests for capacities are rounded up and checked."""

    #: Whether ranges count in thousandths. Otherwise they count in whole units.
    has_fractions: bool = False
    #: Whether an amount that is negative, or larger than 64 bits hold, ends the attempt.
    refuses_odd: bool = False

    def find_unit(self, within: CapacityRange) -> int:
        """Returns the nano-units in which a range counts."""
        given = (within.min, within.max, within.step)
        if (
            self.has_fractions
            and (within.step is None or within.step >= NANOS_PER_MILLI)
            and all(each is None or _is_in_millis(each) for each in given)
        ):
            return NANOS_PER_MILLI
        return NANOS_PER_UNIT


def _is_in_millis(nanos: int) -> bool:
    return nanos % NANOS_PER_MILLI == 0 and nanos // NANOS_PER_MILLI <= MAX_INT64


def _count(nanos: int, unit: int) -> int:
    """Returns an amount in units of so many nano-units, rounded up."""
    return -(-nanos // unit)


def amounts_of(
    requested: Mapping[str, int],
    model: DeviceModel,
    taken: Mapping[str, int],
    rules: CapacityRules,
) -> dict[str, int] | None:
    """Returns what a request takes of each capacity, in nano-units.

    It is None if the device cannot give it. `taken` is what others already use. Raises
    OddCapacityError if the rules refuse an amount.
    """
    if any(name not in model.capacities for name in requested):
        return None
    amounts: dict[str, int] = {}
    for name, capacity in model.capacities.items():
        try:
            amounts[name] = _amount(requested.get(name), capacity, rules)
        except OddCapacityError as error:
            raise OddCapacityError(f'capacity "{name}": {error}') from None
    for name, capacity in model.capacities.items():
        amount = amounts[name]
        if name in requested and not _is_allowed(amount, capacity.policy, rules):
            return None
        if taken.get(name, 0) + amount > capacity.value:
            return None
    return amounts


def _amount(wanted: int | None, capacity: Capacity, rules: CapacityRules) -> int:
    policy = capacity.policy
    if wanted is None:
        default = None if policy is None else policy.default
        amount = capacity.value if default is None else int(default)
    else:
        amount = wanted if policy is None else _round_up(wanted, policy, rules)
    if amount < 0 and rules.refuses_odd:
        raise OddCapacityError("capacity value is negative")
    return amount


def _round_up(wanted: int, policy: CapacityPolicy, rules: CapacityRules) -> int:
    """Returns the next larger amount that the policy allows, or the wanted one."""
    within = policy.valid_range
    if within is not None and within.min is not None:
        if wanted < within.min:
            return int(within.min)
        if within.step is None:
            return wanted
        return _round_up_in_steps(wanted, within.min, within.step, rules.find_unit(within), rules)
    if policy.valid_values:
        return next((int(each) for each in policy.valid_values if each >= wanted), wanted)
    return wanted


def _round_up_in_steps(wanted: int, least: int, step: int, unit: int, rules: CapacityRules) -> int:
    is_fractional = unit == NANOS_PER_MILLI
    if is_fractional and not _is_in_millis(wanted):
        what = f"request {format_quantity(wanted)}"
        raise OddCapacityError(f"{_ODD}: {what} is not a representable milli value")
    first, each = _count(least, unit), _count(step, unit)
    steps = _count(_count(wanted, unit) - first, each) if each else 0
    amount = first + steps * each
    if amount > MAX_INT64 and rules.refuses_odd:
        what = f"rounding request {format_quantity(wanted)} up to the next step"
        bound = "the milli-value range" if is_fractional else "MaxInt64"
        raise OddCapacityError(f"{_ODD}: {what} passes {bound}")
    return amount * unit


def _is_allowed(amount: int, policy: CapacityPolicy | None, rules: CapacityRules) -> bool:
    if policy is None:
        return True
    if policy.default is not None and amount == policy.default:
        return True
    within = policy.valid_range
    if within is not None:
        if within.max is not None and amount > within.max:
            return False
        return _is_at_step(amount, within, rules.find_unit(within))
    if policy.valid_values:
        return any(amount == each for each in policy.valid_values)
    return True


def _is_at_step(amount: int, within: CapacityRange, unit: int) -> bool:
    if unit == NANOS_PER_MILLI and not _is_in_millis(amount):
        return within.step is None
    step = 0 if within.step is None else _count(within.step, unit)
    if not step or within.min is None:
        return True
    return (_count(amount, unit) - _count(within.min, unit)) % step == 0
