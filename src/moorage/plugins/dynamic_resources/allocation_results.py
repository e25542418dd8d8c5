"""Allocations as they are written: devices, their configuration, and where they can be used."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import repeat
from uuid import UUID, uuid5

import msgspec

from moorage.cluster.devices.pools import PoolView
from moorage.objects.node_selector import (
    NAME_FIELD,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from moorage.objects.quantity import Quantity
from moorage.objects.resource_claim import Allocation, ConfigResult, DeviceResult

from .asks import CompiledAsk, CompiledClaim, SearchError
from .search import Pick

# The namespace of the ids of shares. One owner and one place always give the same id.
_SHARES = UUID("7a1f6e0c-4a0b-5f0d-9a53-0d5f6c1b2e90")


def make_allocation(
    claim: CompiledClaim,
    picks: Sequence[Pick],
    views: Sequence[PoolView],
    node_name: str,
    owner: str,
) -> Allocation:
    """Returns what a claim gets on a node. The owner makes the ids of shares unique."""
    results = tuple([_result(pick, views[pick.pool], owner, at) for at, pick in enumerate(picks)])
    config = tuple(_config(claim, picks)) if claim.is_configured else ()
    return Allocation.made_of(results, config, _node_selector(picks, views, node_name))


def _result(pick: Pick, view: PoolView, owner: str, at: int) -> DeviceResult:
    ask, device = pick.ask, view.shape.models[pick.place].device
    driver, pool = view.key
    share: str | None = None
    amounts: dict[str, Quantity] | None = None
    if pick.amounts is not None:
        share = str(uuid5(_SHARES, f"{owner}-{at}"))
        amounts = {name: Quantity(value) for name, value in pick.amounts.items()} or None
    return DeviceResult(
        request=ask.name,
        driver=driver,
        pool=pool,
        device=view.names[pick.place],
        admin_access=True if ask.is_admin else None,
        tolerations=ask.ask.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=share,
        consumed_capacity=amounts,
    )


def chosen_asks(claim: CompiledClaim, picks: Sequence[Pick]) -> list[CompiledAsk]:
    """Returns the alternative that was taken, for each request."""
    taken = {pick.ask for pick in picks}
    return [
        next((ask for ask in request.asks if ask in taken), request.asks[0])
        for request in claim.requests
        if request.asks
    ]


def _config(claim: CompiledClaim, picks: Sequence[Pick]) -> Iterator[ConfigResult]:
    asks = chosen_asks(claim, picks)
    repeats = claim.version.repeats_device_config
    for each in (*_class_config(asks), *_claim_config(claim, asks)):
        if repeats or not all(_is_named(ask, each.requests or ()) for ask in asks):
            yield each
        else:
            # No names stand for all requests.
            yield msgspec.structs.replace(each, requests=None)


def _is_named(ask: CompiledAsk, requests: Collection[str]) -> bool:
    return ask.request_name in requests or ask.name in requests


def _claim_config(claim: CompiledClaim, asks: Sequence[CompiledAsk]) -> Iterator[ConfigResult]:
    for config in claim.spec.config:
        written = ConfigResult(source="FromClaim", requests=config.requests, opaque=config.opaque)
        if not config.requests:
            yield written
            continue
        count = sum(_is_named(ask, config.requests) for ask in asks)
        yield from repeat(written, count if claim.version.repeats_device_config else min(count, 1))


def _class_config(asks: Sequence[CompiledAsk]) -> Iterator[ConfigResult]:
    """Yields the configuration of each class, once for all requests that want the class."""
    by_class: dict[str, list[CompiledAsk]] = {}
    for ask in asks:
        if ask.device_class is not None:
            by_class.setdefault(ask.device_class.name, []).append(ask)
    for wanting in by_class.values():
        found = wanting[0].device_class
        names = tuple(ask.name for ask in wanting)
        for each in found.config if found is not None else ():
            yield ConfigResult(source="FromClass", requests=names, opaque=each.opaque)


def _node_selector(
    picks: Sequence[Pick], views: Sequence[PoolView], node_name: str
) -> NodeSelector | None:
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for pick in picks:
        place = views[pick.pool].shape.models[pick.place].place
        if place.is_local:
            return bound_to(node_name)
        terms = () if place.selector is None else place.selector.node_selector_terms
        if len(terms) > 1:
            raise SearchError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(term.match_fields or (), fields)
            _add_new(term.match_expressions or (), expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(
        match_expressions=tuple(expressions) or None, match_fields=tuple(fields) or None
    )
    return NodeSelector(node_selector_terms=(term,))


def bound_to(node_name: str) -> NodeSelector:
    """Returns a selector that matches only this node."""
    field = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=(node_name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))


def _add_new(
    requirements: Sequence[NodeSelectorRequirement], known: list[NodeSelectorRequirement]
) -> None:
    for each in requirements:
        if not any(_is_same(each, other) for other in known):
            known.append(each)


def _is_same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (
        one.key == other.key
        and one.operator == other.operator
        and set(one.values or ()) == set(other.values or ())
    )
