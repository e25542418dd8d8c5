"""How much a request takes of the capacities of a device."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.cluster.devices.models import Capacity, DeviceModel
from moorage.objects.device import CapacityPolicy
from moorage.objects.quantity import NANOS_PER_UNIT, units


def amounts_of(
    requested: Mapping[str, int], model: DeviceModel, taken: Mapping[str, int]
) -> dict[str, int] | None:
    """Returns what a request takes of each capacity, in nano-units.

    It is None if the device cannot give it. `taken` is what others already use.
    """
    if any(name not in model.capacities for name in requested):
        return None
    amounts: dict[str, int] = {}
    for name, capacity in model.capacities.items():
        amount = _amount(requested.get(name), capacity)
        if amount is None or taken.get(name, 0) + amount > capacity.value:
            return None
        amounts[name] = amount
    return amounts


def _amount(wanted: int | None, capacity: Capacity) -> int | None:
    policy = capacity.policy
    if wanted is None:
        default = None if policy is None else policy.default
        return capacity.value if default is None else int(default)
    if policy is None:
        return wanted
    amount = _round_up(wanted, policy)
    return amount if _is_allowed(amount, policy) else None


def _round_up(wanted: int, policy: CapacityPolicy) -> int:
    """Returns the next larger amount that the policy allows, or the wanted one."""
    within = policy.valid_range
    if within is not None and within.min is not None:
        if wanted < within.min:
            return int(within.min)
        if within.step is None:
            return wanted
        least, step = units(within.min), units(within.step)
        steps = -(-(units(wanted) - least) // step) if step else 0
        return (least + steps * step) * NANOS_PER_UNIT
    if policy.valid_values:
        return next((int(each) for each in policy.valid_values if each >= wanted), wanted)
    return wanted


def _is_allowed(amount: int, policy: CapacityPolicy) -> bool:
    if policy.default is not None and amount == policy.default:
        return True
    within = policy.valid_range
    if within is not None:
        if within.max is not None and amount > within.max:
            return False
        step = 0 if within.step is None else units(within.step)
        if step and within.min is not None:
            return (units(amount) - units(within.min)) % step == 0
        return True
    if policy.valid_values:
        return any(amount == each for each in policy.valid_values)
    return True
