"""Explains in detail why claims get no devices on nodes, and what would help.

Devices are counted by the first cause that rules them out, once per group of like nodes. What would
help is tried: the search runs again without a selector, or with a toleration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.cel import DeviceExpressionError, compile_device_expression
from moorage.cluster import View
from moorage.cluster.devices.device_use import PoolState
from moorage.cluster.devices.groups import SeenPool
from moorage.cluster.devices.models import DeviceModel, PoolShape
from moorage.framework.advice import Advice
from moorage.objects.device import DeviceSelector
from moorage.objects.resource_claim import ClaimSpec, DeviceAsk, DeviceRequest, DeviceToleration

from .asks import CompiledAsk, Judgement, SearchError
from .claim_rows import ClaimRows
from .device_allocation import AllocationFound, ClaimsPlan
from .preparation import ClaimPlans, PreparedClaims, RowOutcomes
from .selectors import view_of

# The most requests that are described, groups of nodes that are counted, and values that are named.
_MOST_REQUESTS = 4
_MOST_GROUPS = 200
_MOST_VALUES = 3

_IN_USE = "in use"
_ELSEWHERE = "for other nodes"
_TOO_SMALL = "too small"
_USED_UP = "out of shared counters"

RowNumbers = NDArray[np.intp]


@dataclass
class _Tally:
    """The numbers of devices of some nodes, by what rules them out for one request."""

    ruled_out: Counter[str] = field(default_factory=Counter)
    #: For each selector that devices fail, their values of the attributes that it reads.
    values: dict[str, Counter[str]] = field(default_factory=dict)
    good: int = 0
    nodes: int = 0

    @property
    def devices(self) -> int:
        return self.good + self.ruled_out.total()


def advise_on_claims(prepared: PreparedClaims, nodes: View, rows: RowNumbers) -> Iterator[Advice]:
    """Yields what keeps a pod's claims from getting devices on rows that the plugin rejects."""
    for allocated in prepared.allocated:
        usable = ClaimRows(prepared, nodes, rows).available(allocated)
        if not usable.all():
            yield Advice(
                f"claim {allocated.claim.key} has its devices on other nodes", kind="devices"
            )
    for part in ClaimRows(prepared, nodes, rows).parts():
        there = rows if part.where is None else rows[part.where]
        if part.plan is not None and len(there):
            keys = [claim.key for claim in prepared.unallocated]
            yield from _PlanAdvice(part.plan, [*keys, ""], nodes, there).advice()


class _PlanAdvice:
    """The advice on claims that are allocated together."""

    def __init__(
        self, plan: ClaimsPlan, keys: Sequence[str], nodes: View, rows: RowNumbers
    ) -> None:
        self._plan = plan
        self._keys = keys
        self._nodes = nodes
        self._groups = nodes.device_groups
        failed = self._outcomes(plan, rows).where(AllocationFound.NOTHING)
        self._rows = rows[failed]

    def advice(self) -> Iterator[Advice]:
        if not len(self._rows):
            return
        asks = [(at, ask) for at, claim in enumerate(self._plan.claims) for ask in claim.asks()]
        for at, ask in asks[:_MOST_REQUESTS]:
            tally = self._tally(ask)
            if tally.good < ask.count * max(tally.nodes, 1) or len(asks) == 1:
                yield Advice(self._describe(at, ask, tally), kind="devices")

    def _outcomes(self, plan: ClaimsPlan, rows: RowNumbers) -> RowOutcomes:
        return RowOutcomes(plan, self._groups, rows)

    def _pools(self) -> Iterator[tuple[Sequence[SeenPool], int]]:
        """Yields the pools of each group of rows and its number of rows, largest group first."""
        groups = self._groups
        pairs = np.stack((groups.local[self._rows], groups.patterns[self._rows]))
        distinct, counts = np.unique(pairs, axis=1, return_counts=True)
        for place in np.argsort(-counts)[:_MOST_GROUPS].tolist():
            local, pattern = distinct[:, place].tolist()
            yield groups.pools(groups.group(local), groups.pattern(pattern)), int(counts[place])

    def _tally(self, ask: CompiledAsk) -> _Tally:
        tally = _Tally()
        for pools, count in self._pools():
            before = tally.devices
            for view, state in pools:
                for place in range(len(view.shape.models)):
                    _count(tally, ask, _Candidate(view.shape, state, place), count)
            tally.nodes += count if tally.devices > before else 0
        return tally

    def _describe(self, at: int, ask: CompiledAsk, tally: _Tally) -> str:
        claim = f" of claim {self._keys[at]}" if self._keys[at] else " for extended resources"
        what = f"request {ask.name}{claim}"
        if not tally.devices:
            return f"{what}: these nodes have no devices"
        causes = [f"{count} {cause}" for cause, count in tally.ruled_out.most_common()]
        if tally.good:
            causes.append(f"{tally.good} would do")
        on = f"{tally.nodes} nodes" if tally.nodes != 1 else "1 node"
        wanted = f" ({ask.count} wanted on one node)" if ask.count > 1 else ""
        text = f"{what}: of {tally.devices} devices on {on}, {', '.join(causes)}{wanted}"
        helps = list(self._remedies(at, ask, tally))
        spec = self._spec(at)
        free = ClaimSpec(devices=replace(spec.devices, constraints=None))
        if spec.constraints and self._would_fit(at, free):
            helps.append("they do not agree on what its constraints want")
        return f"{text}; {'; '.join(helps)}" if helps else text

    def _remedies(self, at: int, ask: CompiledAsk, tally: _Tally) -> Iterator[str]:
        for place, selector in enumerate(ask.ask.selectors or ()):
            text = _selector_text(selector)
            if text not in tally.ruled_out:
                continue
            kept = tuple(each for n, each in enumerate(ask.ask.selectors or ()) if n != place)
            other = _with_ask(self._spec(at), ask, replace(ask.ask, selectors=kept or None))
            count = self._would_fit(at, other)
            values = [value for value, _ in tally.values.get(text, Counter()).most_common()]
            if count:
                named = " or ".join(values[:_MOST_VALUES]) or "others"
                yield f"it would fit {_nodes(count)} if that accepted {named}"
        if any(cause.startswith("tainted") for cause in tally.ruled_out):
            every = (DeviceToleration(operator="Exists"),)
            other = _with_ask(self._spec(at), ask, replace(ask.ask, tolerations=every))
            count = self._would_fit(at, other)
            if count:
                yield f"it would fit {_nodes(count)} if it tolerated that"

    def _spec(self, at: int) -> ClaimSpec:
        return self._plan.claims[at].spec

    def _would_fit(self, at: int, other: ClaimSpec) -> int:
        """Returns how many of the rows would have devices if a claim asked for something else."""
        specs = [claim.spec for claim in self._plan.claims]
        specs[at] = other
        plan = ClaimPlans(self._plan.claims[at].gates).plan(
            tuple(specs), self._nodes.devices.classes
        )
        return int(self._outcomes(plan, self._rows).where(AllocationFound.DEVICES).sum())


@dataclass(frozen=True)
class _Candidate:
    """A device of a pool, and what of the pool is in use."""

    shape: PoolShape
    state: PoolState
    place: int

    @property
    def model(self) -> DeviceModel:
        return self.shape.models[self.place]

    @property
    def is_taken(self) -> bool:
        return bool(self.state[0] >> self.place & 1)

    @property
    def lacks_counters(self) -> bool:
        """Whether it needs more of a counter of its pool than is left."""
        left = dict(enumerate(self.state[1]))
        for name, amount in self.model.counters:
            left[self.shape.counter_places[name]] -= amount
        return bool(self.model.counters) and any(amount < 0 for amount in left.values())


def _count(tally: _Tally, ask: CompiledAsk, device: _Candidate, count: int) -> None:
    cause, values = _cause(ask, device)
    if not cause:
        tally.good += count
        return
    tally.ruled_out[cause] += count
    for value in values:
        tally.values.setdefault(cause, Counter())[value] += count


def _cause(ask: CompiledAsk, device: _Candidate) -> tuple[str, list[str]]:
    """Returns what rules a device out, and its values of what a failing selector reads."""
    class_selectors = ask.device_class.selectors if ask.device_class else ()
    for selector in (*class_selectors, *(ask.ask.selectors or ())):
        if not _selects(selector, device.model):
            return _selector_text(selector), _values(selector, device.model)
    return _other_cause(ask, device), []


def _other_cause(ask: CompiledAsk, device: _Candidate) -> str:
    model = device.model
    if device.is_taken and not ask.is_admin:
        return _IN_USE
    if not model.place.is_here:
        return _ELSEWHERE
    try:
        judgement = ask.judge(model)
    except SearchError:
        return "break an expression"
    if judgement is Judgement.TAINTED:
        taint = ask.find_untolerated(model)
        assert taint is not None, "a judged device is tainted by something"
        return f"tainted {taint.key}={taint.value}:{taint.effect}"
    if judgement is Judgement.NO:
        return _TOO_SMALL
    return _USED_UP if device.lacks_counters else ""


def _selects(selector: DeviceSelector, model: DeviceModel) -> bool:
    expression = selector.cel.expression if selector.cel else ""
    try:
        return compile_device_expression(expression).matches(view_of(model.content))
    except DeviceExpressionError:
        return False


def _selector_text(selector: DeviceSelector) -> str:
    return f"fail {' '.join(selector.cel.expression.split()) if selector.cel else ''}"


def _values(selector: DeviceSelector, model: DeviceModel) -> list[str]:
    expression = selector.cel.expression if selector.cel else ""
    attributes: Mapping[str, tuple[str, object] | None] = model.attributes
    found = []
    for name in compile_device_expression(expression).attributes:
        domain, _, identifier = name.partition("/")
        value = attributes.get(name)
        if value is None and domain == model.driver:
            value = attributes.get(identifier)
        if value is not None:
            text = str(value[1]).lower() if value[0] == "bool" else str(value[1])
            found.append(f"{identifier} {text}")
    return [", ".join(found)] if found else []


def _with_ask(spec: ClaimSpec, ask: CompiledAsk, other: DeviceAsk) -> ClaimSpec:
    requests = tuple(
        _with_other(each, ask, other) if each.name == ask.request_name else each
        for each in spec.requests
    )
    return ClaimSpec(devices=replace(spec.devices, requests=requests))


def _with_other(request: DeviceRequest, ask: CompiledAsk, other: DeviceAsk) -> DeviceRequest:
    if request.exactly is not None:
        return replace(request, exactly=other)
    alternatives = tuple(
        other if each.name == ask.own_name else each for each in request.first_available or ()
    )
    return replace(request, first_available=alternatives)


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
