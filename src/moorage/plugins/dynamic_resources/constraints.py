"""The attributes in which devices of a claim must agree, or must differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence

from moorage.cluster.devices.groups import SeenPool
from moorage.cluster.devices.models import DeviceModel
from moorage.objects.resource_claim import DeviceConstraint

from .asks import CompiledAsk, CompiledClaim

_Value = tuple[str, object] | None


class ConstraintState:
    """One constraint of a claim while devices are chosen for it."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        self._requests = frozenset(constraint.requests or ())
        self._attribute = constraint.match_attribute or constraint.distinct_attribute or ""

    def _applies(self, ask: CompiledAsk) -> bool:
        return _is_meant(self._requests, ask)

    def add(self, ask: CompiledAsk, model: DeviceModel) -> bool:
        """Adds a device and returns True, or returns False if the constraint forbids it."""
        if not self._applies(ask):
            return True
        found = _find(model, self._attribute)
        # A device without the attribute never satisfies a constraint.
        return found is not None and self._add(ask, found[0])

    def remove(self, ask: CompiledAsk) -> None:
        """Removes the device that was added last."""
        if self._applies(ask):
            self._remove(ask)

    def _add(self, ask: CompiledAsk, value: _Value) -> bool:
        raise NotImplementedError

    def _remove(self, ask: CompiledAsk) -> None:
        raise NotImplementedError

    @property
    def state(self) -> Hashable:
        """Returns all that decides which devices it accepts next."""
        raise NotImplementedError


class _Match(ConstraintState):
    """All devices must have the value of the first."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        super().__init__(constraint)
        self._value: _Value = None
        self._count = 0

    def _add(self, ask: CompiledAsk, value: _Value) -> bool:
        if self._count == 0:
            self._value = value
        elif value is None or value != self._value:
            return False
        self._count += 1
        return True

    def _remove(self, ask: CompiledAsk) -> None:
        self._count -= 1

    @property
    def state(self) -> Hashable:
        return (self._value, True) if self._count else None


class _Distinct(ConstraintState):
    """All devices must differ."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        super().__init__(constraint)
        self._values: list[_Value] = []

    def _add(self, ask: CompiledAsk, value: _Value) -> bool:
        if self._values and (value is None or value in self._values):
            return False
        self._values.append(value)
        return True

    def _remove(self, ask: CompiledAsk) -> None:
        self._values.pop()

    @property
    def state(self) -> Hashable:
        return frozenset(self._values)


class _LatestDistinct(ConstraintState):
    """Devices must differ, by the rule of kube-scheduler 1.36: it keeps one value per request.

    This is the value of the latest device. Removing a device of the request drops the value.
    """

    def __init__(self, constraint: DeviceConstraint) -> None:
        super().__init__(constraint)
        self._values: dict[str, _Value] = {}

    def _add(self, ask: CompiledAsk, value: _Value) -> bool:
        if self._values and (value is None or value in self._values.values()):
            return False
        self._values[ask.request_name] = value
        return True

    def _remove(self, ask: CompiledAsk) -> None:
        self._values.pop(ask.request_name, None)

    @property
    def state(self) -> Hashable:
        return tuple(sorted(self._values.items(), key=lambda pair: pair[0]))


def track(claim: CompiledClaim) -> tuple[ConstraintState, ...]:
    """Returns the constraints of a claim, in the state in which it has no devices yet."""
    distinct = _LatestDistinct if claim.version.keeps_latest_distinct else _Distinct
    return tuple(
        _Match(each) if each.match_attribute is not None else distinct(each)
        for each in claim.constraints
    )


def _is_meant(requests: Collection[str], ask: CompiledAsk) -> bool:
    return not requests or ask.request_name in requests or ask.name in requests


def lacks_matching(claim: CompiledClaim, pools: Sequence[SeenPool]) -> bool:
    """Whether a constraint wants more devices with one value than are free.

    The claim must be regular. The pools must have no devices that can be shared, and no expression
    may fail for their devices. Then a search would find nothing either.
    """
    for each in claim.constraints:
        if each.match_attribute is None:
            continue
        asks = [ask for ask in claim.asks() if _is_meant(each.requests or (), ask)]
        wanted = sum(ask.count for ask in asks)
        if wanted > 1 and wanted > _most_alike(asks, each.match_attribute, pools):
            return True
    return False


def _most_alike(asks: Sequence[CompiledAsk], attribute: str, pools: Sequence[SeenPool]) -> int:
    """Returns the largest number of free suitable devices that have the same value."""
    counts: Counter[_Value] = Counter()
    for view, state in pools:
        good = 0
        for ask in asks:
            good |= ask.masks(view.shape)[0]
        good &= ~state[0]
        for place, model in enumerate(view.shape.models):
            found = _find(model, attribute) if good >> place & 1 else None
            # A value of an unknown type equals no other value.
            if found is not None and found[0] is not None:
                counts[found[0]] += 1
    return max(counts.values(), default=0)


def _find(model: DeviceModel, attribute: str) -> tuple[_Value] | None:
    """Returns the value of an attribute in a tuple; None if the device does not have it.

    The value itself is None if its type is unknown.
    """
    attributes = model.attributes
    if attribute in attributes:
        return (attributes[attribute],)
    domain, slash, name = attribute.partition("/")
    if slash and domain == model.driver and name in attributes:
        return (attributes[name],)
    return None
