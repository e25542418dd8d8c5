"""How full domains are: what their nodes offer, and what pods there request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes, Rows
from moorage.cluster.changes import Change
from moorage.cluster.row_view import RowView
from moorage.framework.plugin import MAX_SCORE
from moorage.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY

from .group_result import Domain
from .key_domains import DomainSums, has_all, split_by, sum_domains

Numbers = NDArray[np.int64]

#: Resources, and where their columns are.
Places = tuple[tuple[str, int], ...]

#: In the order of `Nodes.nonzero_requested`.
NEVER_ZERO = (CPU, MEMORY)

# The others count for pods that ask for them.
_ALWAYS = (*NEVER_ZERO, EPHEMERAL_STORAGE)

# Sums beyond this are worked with as Python's integers.
_MOST_EXACT = 2**55

_ALLOCATABLE, _REQUESTED = int(Change.ALLOCATABLE), int(Change.REQUESTED)


def measure_fullness(
    domains: Sequence[Domain],
    added: Numbers,
    resources: Mapping[str, int],
    nodes: Nodes,
    key: str = "",
) -> Numbers:
    """Returns how full each domain would be with what is added, from 0 to 100.

    Resources have weights; `added` is an amount for each resource and domain. Extended resources
    count only where some of them is added. If the domains are all of a key, their present use is
    kept.
    """
    places = find_places(resources, nodes)
    if len(places) < len(resources):
        added = added[[nodes.resource(name) is not None for name in resources]]
    if nodes.changes is not None and has_all(domains, key, nodes):
        use = _find_kept(places, key, nodes)
    else:
        use = _add_up(places, domains, nodes, key)
    weights = np.array([[resources[name]] for name, _ in places], np.int64).reshape(-1, 1)
    always = np.array([[name in _ALWAYS] for name, _ in places], np.bool_).reshape(-1, 1)
    return _weigh(use.offered, use.requested + added, weights * (always | (added > 0)))


def find_places(resources: Iterable[str], nodes: Nodes) -> Places:
    """The resources that some node offers, and where their columns are."""
    known = ((name, nodes.resource(name)) for name in resources)
    return tuple((name, place) for name, place in known if place is not None)


def _weigh(offered: Numbers, used: Numbers, weights: Numbers) -> Numbers:
    """Returns the used share of what is offered, by the weights of the existing resources."""
    there = (offered > 0) * weights
    if offered.max(initial=0) > _MOST_EXACT:
        # A hundredfold of it is more than 64 bits hold.
        offered, used = offered.astype(object), used.astype(object)
    shares = np.minimum(used, offered) * MAX_SCORE // np.maximum(offered, 1)
    totals: Numbers = (shares.astype(np.int64) * there).sum(axis=0)
    return totals // np.maximum(there.sum(axis=0), 1)


def _find_requested(name: str, place: int, nodes: Nodes, rows: Rows) -> Numbers:
    """Returns what is requested of a resource on rows, 0 where none of it is offered.

    Pods without cpu or memory requests count with a little.
    """
    column = nodes.requested[place]
    if name in NEVER_ZERO:
        column = nodes.nonzero_requested[NEVER_ZERO.index(name)]
    return np.where(nodes.allocatable[place, rows] > 0, column[rows], 0)


class DomainUse(NamedTuple):
    """What domains offer of each resource, and what is requested there."""

    offered: Numbers
    requested: Numbers


def _add_up(places: Places, domains: Sequence[Domain], nodes: Nodes, key: str) -> DomainUse:
    use = DomainUse(*np.zeros((2, len(places), len(domains)), np.int64))
    for at, (name, place) in enumerate(places):
        use.offered[at] = sum_domains(nodes.allocatable[place], domains, nodes, key)
        requested = _find_requested(name, place, nodes, nodes.everything)
        use.requested[at] = sum_domains(requested, domains, nodes, key)
    return use


class _KeptUse:
    """The use of all domains of a label, by sums that follow the rows."""

    def __init__(self, places: Places, key: str, nodes: Nodes) -> None:
        domains = split_by(key, nodes)
        self._offered, self._requested = [], []
        for name, place in places:
            offered = RowView(nodes, _ALLOCATABLE, partial(_read_offered, nodes, place))
            requested = RowView(
                nodes, _ALLOCATABLE | _REQUESTED, partial(_find_requested, name, place, nodes)
            )
            self._offered.append(DomainSums(offered, domains))
            self._requested.append(DomainSums(requested, domains))

    def current(self) -> DomainUse:
        return DomainUse(_stack(self._offered), _stack(self._requested))


def _read_offered(nodes: Nodes, place: int, rows: Rows) -> Numbers:
    return nodes.allocatable[place, rows]


def _stack(sums: Sequence[DomainSums]) -> Numbers:
    return np.array([each.current() for each in sums], np.int64)


def _find_kept(places: Places, key: str, nodes: Nodes) -> DomainUse:
    """Returns the kept use, updated with the rows that changed."""
    like = key, places, nodes.resources_version
    return nodes.derived.get(("use", *like), lambda: _KeptUse(places, key, nodes)).current()
