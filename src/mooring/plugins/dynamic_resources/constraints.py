"""What devices of a claim must have in common, or must differ in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence

from mooring.cluster.devices.groups import SeenPool
from mooring.cluster.devices.models import DeviceModel
from mooring.objects.resource_claim import DeviceConstraint

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
        """Takes a device in, unless the constraint forbids it."""
        if not self._applies(ask):
            return True
        found = _find(model, self._attribute)
        # A device without the attribute never satisfies a constraint.
        return found is not None and self._add(ask, found[0])

    def remove(self, ask: CompiledAsk) -> None:
        """Lets the device go that was taken in last."""
        if self._applies(ask):
            self._remove(ask)

    def _add(self, ask: CompiledAsk, value: _Value) -> bool:
        raise NotImplementedError

    def _remove(self, ask: CompiledAsk) -> None:
        raise NotImplementedError

    @property
    def state(self) -> Hashable:
        """All that decides which devices it accepts from here on."""
        raise NotImplementedError


class _Match(ConstraintState):
    """All devices have the same value: that of the first."""

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
    """Devices differ, as kube-scheduler 1.36 sees it: it knows one value per request.

    That is the value of the latest device, and it is forgotten when that device is let go.
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


def track(constraints: Sequence[DeviceConstraint]) -> tuple[ConstraintState, ...]:
    """Constraints of a claim that has no devices yet."""
    return tuple(
        _Match(each) if each.match_attribute is not None else _Distinct(each)
        for each in constraints
    )


def _is_meant(requests: Collection[str], ask: CompiledAsk) -> bool:
    return not requests or ask.request_name in requests or ask.name in requests


def lacks_matching(claim: CompiledClaim, pools: Sequence[SeenPool]) -> bool:
    """Whether some devices must have a value in common that too few free ones have.

    For claims that are regular, and pools without devices that can be shared, of which expressions
    say no more than yes or no: then a search would find nothing either.
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
    """How many free devices that would do have the same value at the most."""
    counts: Counter[_Value] = Counter()
    for view, state in pools:
        good = 0
        for ask in asks:
            good |= ask.masks(view.shape)[0]
        good &= ~state[0]
        for place, model in enumerate(view.shape.models):
            found = _find(model, attribute) if good >> place & 1 else None
            # Values of types that are not known are like no other.
            if found is not None and found[0] is not None:
                counts[found[0]] += 1
    return max(counts.values(), default=0)


def _find(model: DeviceModel, attribute: str) -> tuple[_Value] | None:
    """The value of an attribute, which is None if its type is not known; None if there is none."""
    attributes = model.attributes
    if attribute in attributes:
        return (attributes[attribute],)
    domain, slash, name = attribute.partition("/")
    if slash and domain == model.driver and name in attributes:
        return (attributes[name],)
    return None
