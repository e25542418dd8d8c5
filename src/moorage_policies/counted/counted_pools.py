"""CountedPools: the cluster as a whole must have enough left, wherever a pod goes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from moorage.plugin import (
    Change,
    Code,
    DecodeError,
    Filter,
    HandleRegistry,
    Pod,
    PreFilter,
    Reason,
    Rejected,
    Rows,
    Scope,
    Verdict,
    View,
    unresolvable,
)

from .counted_amount import CountedAmount
from .counted_args import CountedPoolsArgs
from .counting_plugin import CountingPlugin


@dataclass(frozen=True, slots=True)
class PoolDemand:
    """What a pod requests of one pool, and how much of it there is and is used."""

    name: str
    amount: int
    #: None if it is not known.
    capacity: int | None
    used: int = 0
    is_old: bool = False

    @property
    def refusal(self) -> Reason | None:
        """Returns why the pool does not suffice."""
        name = self.name
        if self.capacity is None:
            return Reason(f"the pool {name} is not known", Code.UNRESOLVABLE)
        if self.is_old:
            return Reason(f"the pool {name} was reported too long ago", Code.UNRESOLVABLE)
        if self.capacity - self.used >= self.amount:
            return None
        # Evicting helps with what is taken, not with what was never there.
        code = Code.UNSCHEDULABLE if self.capacity >= self.amount else Code.UNRESOLVABLE
        left = max(self.capacity - self.used, 0)
        return Reason(f"the pool {name} has {left} of {self.capacity} left", code)


PoolDemands = tuple[PoolDemand, ...]


class CountedPools(PreFilter[PoolDemands], Filter[PoolDemands], CountingPlugin):
    """Compares the requests of pods with what is left of each pool."""

    name = "CountedPools"
    Args = CountedPoolsArgs
    reads = Change.EXTENDED
    # A pod that comes to one node takes from what there is for all.
    scope = Scope.CLUSTER

    def __init__(
        self, args: CountedPoolsArgs | None = None, handles: HandleRegistry | None = None
    ) -> None:
        super().__init__((args or CountedPoolsArgs()).pools, handles)

    def pre_filter(self, pod: Pod, nodes: View) -> PoolDemands | Rejected | None:
        found = []
        try:
            for name, handle in self._handles.items():
                amount = handle.use.amount(pod)
                if amount:
                    found.append(_demand(name, amount, nodes))
        except DecodeError as error:
            return unresolvable(str(error))
        return tuple(found) or None

    def add_pod(self, prepared: PoolDemands, nodes: View, pod: Pod, row: int) -> PoolDemands:
        return self._move(prepared, pod, 1)

    def remove_pod(self, prepared: PoolDemands, nodes: View, pod: Pod, row: int) -> PoolDemands:
        return self._move(prepared, pod, -1)

    def _move(self, prepared: PoolDemands, pod: Pod, sign: int) -> PoolDemands:
        """Returns the demands as if a pod came or went; the same value if it uses none of them."""
        uses = [self._readable(each.name, pod) for each in prepared]
        if not any(uses):
            return prepared
        pairs = zip(prepared, uses, strict=True)
        return tuple(replace(each, used=each.used + sign * use) for each, use in pairs)

    def _readable(self, name: str, pod: Pod) -> int:
        try:
            return self._handles[name].use.amount(pod)
        except DecodeError:
            # Such a pod is not counted anywhere.
            return 0

    def filter(self, prepared: PoolDemands, nodes: View, rows: Rows) -> Verdict:
        refusals = tuple(filter(None, (each.refusal for each in prepared)))
        shape = len(refusals), nodes.count(rows)
        return Verdict(refusals, np.ones(shape, np.bool_))


def _demand(name: str, amount: int, nodes: View) -> PoolDemand:
    pool = nodes.extended.pool(name)
    if not isinstance(pool, CountedAmount):
        return PoolDemand(name, amount, None)
    return PoolDemand(name, amount, pool.capacity, pool.used, bool(pool.old))
