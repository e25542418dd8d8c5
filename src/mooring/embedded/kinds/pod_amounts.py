"""What a pod requests and may use in all, in nano-units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from mooring.embedded.api.decoding import part
from mooring.embedded.store.table import Json
from mooring.objects.quantity import Quantity

#: Nano-units by the name of a resource.
Nanos = dict[str, int]


def read_amounts(amounts: Mapping[str, str]) -> Nanos:
    """Reads amounts as nano-units."""
    return {name: int(Quantity.parse(amount)) for name, amount in amounts.items()}


def pod_total(spec: Json, field: str) -> Nanos:
    """Returns the requests or limits of a pod: what runs at once, and its overhead.

    Init containers run one after the other, beside the sidecars that came before them.
    """
    total = add_amounts(_amounts(each, field) for each in spec.get("containers") or ())
    beside: Nanos = {}
    peak: Nanos = {}
    for each in spec.get("initContainers") or ():
        now = add_amounts((beside, _amounts(each, field)))
        peak = _larger(peak, now)
        if each.get("restartPolicy") == "Always":
            beside = now
    total = _larger(add_amounts((total, beside)), peak)
    total |= _amounts(spec, field)
    overhead = read_amounts(part(spec, "overhead"))
    if field == "limits":
        # Without a limit there is nothing to add to.
        overhead = {name: each for name, each in overhead.items() if total.get(name)}
    return add_amounts((total, overhead))


def _amounts(holder: Json, field: str) -> Nanos:
    return read_amounts(part(part(holder, "resources"), field))


def add_amounts(amounts: Iterable[Mapping[str, int]]) -> Nanos:
    """Adds up amounts by name."""
    total: Counter[str] = Counter()
    for each in amounts:
        for name, amount in each.items():
            total[name] += amount
    return dict(total)


def _larger(one: Nanos, other: Nanos) -> Nanos:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
