"""Affinity as pods ask for it."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.embedded.errors import Fault, invalid_value, required
from mooring.embedded.names import label_key_faults, label_name_faults

from .plain import Json, part
from .selector_faults import label_selector_faults, node_selector_faults, node_term_faults

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity_faults(at: str, affinity: Json) -> Iterator[Fault]:
    if "nodeAffinity" in affinity:
        yield from _node_faults(f"{at}.nodeAffinity", affinity["nodeAffinity"])
    for name in ("podAffinity", "podAntiAffinity"):
        if name in affinity:
            yield from _pod_faults(f"{at}.{name}", affinity[name])


def _node_faults(at: str, affinity: Json) -> Iterator[Fault]:
    if _REQUIRED in affinity:
        yield from node_selector_faults(f"{at}.{_REQUIRED}", affinity[_REQUIRED])
    for index, each in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{at}.{_PREFERRED}[{index}]"
        yield from _weight_faults(where, each)
        yield from node_term_faults(f"{where}.preference", part(each, "preference"))


def _pod_faults(at: str, affinity: Json) -> Iterator[Fault]:
    for index, each in enumerate(affinity.get(_REQUIRED) or ()):
        yield from _term_faults(f"{at}.{_REQUIRED}[{index}]", each)
    for index, each in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{at}.{_PREFERRED}[{index}]"
        yield from _weight_faults(where, each)
        yield from _term_faults(f"{where}.podAffinityTerm", part(each, "podAffinityTerm"))


def _weight_faults(at: str, weighted: Json) -> Iterator[Fault]:
    weight = weighted.get("weight", 0)
    if not 1 <= weight <= 100:
        yield invalid_value(f"{at}.weight", weight, "must be in the range 1-100")


def _term_faults(at: str, term: Json) -> Iterator[Fault]:
    yield from label_selector_faults(f"{at}.labelSelector", term.get("labelSelector"))
    yield from label_selector_faults(f"{at}.namespaceSelector", term.get("namespaceSelector"))
    for name in term.get("namespaces") or ():
        yield from label_name_faults(f"{at}.namespaces", name)
    key = term.get("topologyKey", "")
    if not key:
        yield required(f"{at}.topologyKey", "can not be empty")
    else:
        yield from label_key_faults(f"{at}.topologyKey", key)
