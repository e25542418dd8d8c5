"""How full domains are: what their nodes offer, and what pods there request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes
from moorage.framework.plugin import MAX_SCORE
from moorage.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY

from .group_result import Domain
from .key_domains import sum_domains

Numbers = NDArray[np.int64]

#: Resources, and where their columns are.
Places = tuple[tuple[str, int], ...]

#: In the order of `Nodes.nonzero_requested`.
NEVER_ZERO = (CPU, MEMORY)

# The others count for pods that ask for them.
_ALWAYS = (*NEVER_ZERO, EPHEMERAL_STORAGE)

# Sums beyond this are worked with as Python's integers.
_MOST_EXACT = 2**55


def measure_fullness(
    domains: Sequence[Domain],
    added: Numbers,
    resources: Mapping[str, int],
    nodes: Nodes,
    key: str = "",
) -> Numbers:
    """Returns how full each domain would be with what is added, from 0 to 100.

    Resources have weights; `added` is an amount for each resource and domain. Extended resources
    count only where some of them is added. The key is that of the domains, if they are all of one.
    """
    places = find_places(resources, nodes)
    if len(places) < len(resources):
        added = added[[nodes.resource(name) is not None for name in resources]]
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


def _find_requested(name: str, place: int, nodes: Nodes) -> Numbers:
    """Returns what is requested of a resource on all rows, 0 where none of it is offered.

    Pods without cpu or memory requests count with a little.
    """
    rows, column = nodes.everything, nodes.requested[place]
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
        requested = _find_requested(name, place, nodes)
        use.requested[at] = sum_domains(requested, domains, nodes, key)
    return use
